"""A process and its surroundings: random generators, signals, rank, Slurm.

May import: no other folder.
"""
