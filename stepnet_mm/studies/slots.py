"""What of this machine each of several runs at a time gets."""
import os


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


def threads_of_each(jobs: int) -> int:
    """Processor threads for each of ``jobs`` processes."""
    cores = (len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity')
             else os.cpu_count() or 1)
    return max(cores // jobs, 1)
