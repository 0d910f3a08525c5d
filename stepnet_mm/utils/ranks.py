"""The rank of a process before there is a process group."""
import os


def is_first_rank() -> bool:
    """Whether what started this, if anything did, made it rank 0."""
    names = 'RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'
    ranks = [os.environ[name] for name in names if name in os.environ]
    return ranks[:1] in ([], ['0'])
