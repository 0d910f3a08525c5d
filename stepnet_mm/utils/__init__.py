"""The ground: random generators, workers, rank, whole files, precision.

May import: no other folder.
"""
