"""The ranks of a launcher and their process group, also on CPU."""
import datetime
import os
import re
import socket
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence

import torch
from mmengine.config import Config
from mmengine.device import get_device
from torch import distributed

from ..utils.slurm import field_of, is_first_rank, slurm_command

#: Ports of Slurm jobs; the system gives ports from 32768 on to others.
_PORTS = range(10000, 30000)
#: Variables of torch, and those that srun and mpirun set in their place.
_RANK = 'RANK', 'WORLD_SIZE', 'LOCAL_RANK'
_RANK_OF = dict(
    slurm=('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'),
    mpi=('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE',
         'OMPI_COMM_WORLD_LOCAL_RANK'))


def init_distributed(cfg: Config) -> None:
    """Set up the process group of the config's launcher.

    mmengine's Runner keeps an existing one; its own set-up needs a GPU and
    uses one port for all Slurm jobs. ``env_cfg.dist_cfg`` holds ``backend``
    (default: nccl with GPUs, gloo without) and ``timeout`` in seconds. On a
    CPU ``model_wrapper_cfg`` is changed as DDP requires.

    Raises:
        ValueError: if it was not started by that launcher, or there are more
            ranks than GPUs on this node.
        RuntimeError: of torch, if the ranks do not find one another.
    """
    launcher = cfg.get('launcher', 'none')
    if launcher == 'none' or distributed.is_initialized():
        return
    set_rank_environment(launcher)
    device = get_device()
    if device not in ('cpu', 'cuda'):
        return  # mmengine sets up the others
    sys.excepthook = _name_the_rank
    settings = dict((cfg.get('env_cfg') or {}).get('dist_cfg') or {})
    if device == 'cuda':
        torch.cuda.set_device(_local_gpu())
        backend = settings.get('backend', 'nccl')
    else:
        backend = 'gloo'
        cfg.model_wrapper_cfg = _cpu_wrapper(cfg)
    distributed.init_process_group(
        backend,
        timeout=datetime.timedelta(seconds=settings.get('timeout') or 1800))


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


def stand_alone() -> None:
    """Make a process without ``--launcher`` a separate run.

    Its rank, which srun and torchrun always set, is removed from the
    environment; the first of several such processes warns.
    """
    count = next((os.environ[name] for name in (
        'WORLD_SIZE', 'SLURM_STEP_NUM_TASKS', 'OMPI_COMM_WORLD_SIZE')
        if name in os.environ), '1')
    if count != '1' and is_first_rank():
        warnings.warn(
            f'--launcher: expected pytorch (torchrun), slurm (srun) or mpi '
            f'with {count} processes, got none; each of them does the whole '
            'work by itself: name the launcher, or start one process',
            stacklevel=2)
    for name in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'):
        os.environ.pop(name, None)


def set_rank_environment(launcher: str) -> None:
    """Set torch's variables of a process that a launcher started.

    Raises:
        ValueError: if it was not started by that launcher.
    """
    given = _RANK_OF.get(launcher, ())
    _require(launcher, given)
    os.environ.update(zip(_RANK, [os.environ[name] for name in given]))
    if launcher == 'slurm':
        os.environ.setdefault('MASTER_PORT', str(slurm_port(
            int(os.environ['SLURM_JOB_ID']),
            int(os.environ.get('SLURM_STEP_ID', 0)))))
        if 'MASTER_ADDR' not in os.environ:
            os.environ['MASTER_ADDR'] = first_host(
                os.environ.get('SLURM_STEP_NODELIST')
                or os.environ['SLURM_JOB_NODELIST'])
    if launcher == 'mpi':
        os.environ.setdefault('MASTER_PORT', '29500')
    _require(launcher, (*_RANK, 'MASTER_ADDR', 'MASTER_PORT'))


def _require(launcher: str, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise ValueError(
            f'--launcher {launcher}: expected {", ".join(names)} in the '
            f'environment, got no {", ".join(missing)}; start it with '
            'tools/dist_train.sh, tools/slurm_train.sh or mpirun, set them, '
            'or choose another --launcher')


def first_host(node_list: str) -> str:
    """The address of the first node of a list, as the other nodes reach it.

    The list has Slurm's form, such as ``node[3-5,7]``.

    Raises:
        ValueError: if the name does not resolve, and ``scontrol``, which
            containers often lack, gives no address.
    """
    host = re.sub(r'\[(\w+)[^]]*\]', r'\1', node_list).partition(',')[0]
    try:
        socket.getaddrinfo(host, None)
        return host
    except OSError:  # ask Slurm
        pass
    try:
        shown = slurm_command('scontrol', 'show', 'node', '-o', host)
        return field_of(shown, 'NodeAddr')
    except RuntimeError as error:
        raise ValueError(
            f'MASTER_ADDR: expected an address of the first node, got {host}, '
            f'which does not resolve here ({error}); set MASTER_ADDR'
        ) from None


def slurm_port(job: int, step: int) -> int:
    """A port for a step of a job, not that of its neighbours."""
    return _PORTS[(job * 10 + step) % len(_PORTS)]


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
    unused = cfg.get('find_unused_parameters', False)
    return {**dict(type='MMDistributedDataParallel', broadcast_buffers=False,
                   find_unused_parameters=unused),
            **(cfg.get('model_wrapper_cfg') or {}), 'device_ids': None}


def _name_the_rank(kind, error, trace) -> None:
    """An excepthook that names the rank."""
    lines = traceback.format_exception(kind, error, trace)
    print(f'{_this_rank()} stops:\n', *lines, sep='', end='',
          file=sys.stderr, flush=True)


def _this_rank() -> str:
    return (f'rank {os.environ["RANK"]} of {os.environ["WORLD_SIZE"]} on '
            f'{socket.gethostname()}')
