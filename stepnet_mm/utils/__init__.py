"""The ground: random generators, signals, rank, Slurm, files, precision,
and with what a run is made.

May import: no other folder.
"""
