"""The ground: random generators, signals, rank, Slurm, files, precision.

May import: no other folder.
"""
