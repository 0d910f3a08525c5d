"""Random generators, signals, ranks, Slurm, files, precision, provenance.

May import: no other folder.
"""
