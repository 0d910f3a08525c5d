"""What other folders share: the job, files, errors, generators, precision.

May import: no other folder.
"""
