"""Random generators, signals, the job, files, hooks, precision, provenance.

May import: no other folder.
"""
