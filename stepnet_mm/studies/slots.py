"""What of this machine each of several runs at a time gets."""
import os
from collections.abc import Mapping

#: A training is no part of the Slurm job, or of the ranks, that a runner is
#: in: it would put that job back into the queue.
JOB = ('SLURM_JOB_ID', 'SLURM_ARRAY_JOB_ID', 'SLURM_PROCID',
       'SLURM_STEP_NUM_TASKS', 'RANK', 'WORLD_SIZE')


def gpu_environments() -> list[dict[str, str]]:
    """The environment that leaves one GPU visible, for each of them.

    Of those that ``CUDA_VISIBLE_DEVICES`` names, where it is set. Without a
    GPU there is one environment, which changes nothing.
    """
    import torch
    count = torch.cuda.device_count()
    visible = os.environ.get('CUDA_VISIBLE_DEVICES')
    names = visible.split(',') if visible else map(str, range(count))
    return [{'CUDA_VISIBLE_DEVICES': name.strip()}
            for name, _ in zip(names, range(count))] or [{}]


def environment_of(slot: Mapping[str, str], threads: int) -> dict[str, str]:
    """All environment variables of a process.

    Args:
        slot (mapping): those of :func:`gpu_environments`, or others.
        threads (int): of the processor.
    """
    return {**{k: v for k, v in os.environ.items() if k not in JOB},
            'OMP_NUM_THREADS': str(threads), **slot}


def threads_of_each(jobs: int) -> int:
    """Processor threads for each of ``jobs`` processes.

    An equal share of the cores, at most what ``OMP_NUM_THREADS`` asks for.
    """
    cores = (len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity')
             else os.cpu_count() or 1)
    share = max(cores // jobs, 1)
    asked = os.environ.get('OMP_NUM_THREADS', '')
    return min(share, int(asked) or share) if asked.isdecimal() else share
