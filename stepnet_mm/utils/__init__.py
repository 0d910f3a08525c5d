"""The state of a process: random generators, signals of its workers, rank.

May import: no other folder.
"""
