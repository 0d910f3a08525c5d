"""The rank of a process before there is a process group."""
import os


def is_first_rank() -> bool:
    """Whether torchrun or Slurm, if either started this, made it rank 0."""
    rank = os.environ.get('RANK', os.environ.get('SLURM_PROCID', '0'))
    return rank == '0'
