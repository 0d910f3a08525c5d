"""Sets up the process group, also on CPU, with a port for each job."""
import datetime
import os
import socket
import sys
import traceback
from collections.abc import Callable

import torch
from mmengine.config import Config
from mmengine.device import get_device
from torch import distributed

from ..utils.ranks import is_first_rank
from .slurm_and_mpi_ranks import set_rank_environment

#: In gloo's error after a timeout.
_WAITED = 'Timed out waiting', 'Application timeout'


def init_distributed(cfg: Config) -> None:
    """Set up the process group of the config's launcher.

    mmengine's Runner keeps an existing one; its own set-up needs a GPU and
    uses one port for all Slurm jobs. ``env_cfg.dist_cfg`` holds ``backend``
    (default: nccl with GPUs, gloo without) and ``timeout`` in seconds.

    Args:
        cfg (Config): ``launcher`` is none, pytorch, slurm or mpi. On CPU its
            ``model_wrapper_cfg`` is changed as DDP requires.

    Raises:
        ValueError: if it was not started by that launcher, or there are more
            ranks than GPUs on this node.
        ConnectionError: if the ranks do not find one another.
    """
    launcher = cfg.get('launcher', 'none')
    if launcher == 'none' or distributed.is_initialized():
        return
    set_rank_environment(launcher)
    device = get_device()
    if device not in ('cpu', 'cuda'):
        return  # mmengine sets up the others
    sys.excepthook = _name_the_rank
    _init(cfg, device)


def on_first_rank(function: Callable, *args) -> None:
    """Call a function on the first rank; an error there stops all ranks.

    A collective call, after :func:`init_distributed`.

    Raises:
        Exception: on the first rank, the function's.
        SystemExit: on the others.
    """
    from mmengine import dist  # takes seconds to import
    error = None
    try:
        if is_first_rank():
            function(*args)
    except Exception as raised:
        error = raised
    failed = [error is not None]
    dist.broadcast_object_list(failed)
    if error is not None:
        raise error
    if failed[0]:
        sys.exit(f'{_this_rank()} stops: rank 0 says why')


def _init(cfg: Config, device: str) -> None:
    settings = dict((cfg.get('env_cfg') or {}).get('dist_cfg') or {})
    if device == 'cuda':
        torch.cuda.set_device(_local_gpu())
        backend = settings.get('backend', 'nccl')
    else:
        backend = 'gloo'
        cfg.model_wrapper_cfg = _cpu_wrapper(cfg)
    address = f'{os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]}'
    try:
        distributed.init_process_group(
            backend,
            timeout=datetime.timedelta(
                seconds=settings.get('timeout') or 1800))
    except RuntimeError as error:
        reason = str(error).partition('\n')[0]
        raise ConnectionError(
            'MASTER_ADDR, MASTER_PORT: expected '
            f'{os.environ["WORLD_SIZE"]} ranks to meet at {address}, got '
            f'{reason} in rank {os.environ["RANK"]}; check both, that the '
            'port is free (PORT for dist_train.sh), and that all ranks were '
            'started') from error


def _local_gpu() -> int:
    """The GPU of this rank; also set as LOCAL_RANK, for DDP."""
    rank, count = int(os.environ['LOCAL_RANK']), torch.cuda.device_count()
    if count == 1 and 'LOCAL_WORLD_SIZE' not in os.environ:
        rank = 0  # Slurm shows each task its own; torchrun shows all
    if rank >= count:
        raise ValueError(
            f'GPUS, GPUS_PER_NODE: expected at most {count} ranks on '
            f'{socket.gethostname()}, which shows {count} GPUs, got a rank '
            f'{rank} there; start fewer')
    os.environ['LOCAL_RANK'] = str(rank)
    return rank


def _cpu_wrapper(cfg: Config) -> dict:
    return dict(
        dict(
            type='MMDistributedDataParallel',
            broadcast_buffers=False,
            find_unused_parameters=cfg.get('find_unused_parameters', False)),
        **{**(cfg.get('model_wrapper_cfg') or {}), 'device_ids': None})


def _name_the_rank(kind, error, trace) -> None:
    """An excepthook that names the rank."""
    text = ''.join(traceback.format_exception(kind, error, trace))
    if any(words in str(error) for words in _WAITED):
        text += (
            'env_cfg.dist_cfg.timeout: expected an answer of all ranks in '
            f'that time, got none in {_this_rank()}; the rank that does not '
            'say "stops" stands still, look where (data, a full disk), or '
            'set a longer one\n')
    sys.stderr.write(f'{_this_rank()} stops:\n{text}')
    sys.stderr.flush()


def _this_rank() -> str:
    return (f'rank {os.environ["RANK"]} of {os.environ["WORLD_SIZE"]} on '
            f'{socket.gethostname()}')
