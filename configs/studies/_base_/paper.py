# The paper's seeds, and what is measured of each network. How long a run takes
# on a GPU has not been measured, so `seconds` is not given.
seeds = [0, 1, 2, 3, 4]
measure = dict(num_samples=2000, definitions=['residual', 'output', 'update'],
               ablate_steps=True)
