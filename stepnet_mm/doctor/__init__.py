"""Whether this machine and environment are fit to train: the doctor.

``python -m stepnet_mm.doctor``. A check is a function that yields rows, listed
in :mod:`.__main__`; :mod:`.process` runs most in a process beside the doctor.

May import: config, launch, ops, utils.
"""
