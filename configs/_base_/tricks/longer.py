# How many times the epochs and milestones.
longer = 2
