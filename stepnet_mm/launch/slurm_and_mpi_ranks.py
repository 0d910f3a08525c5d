"""Ranks, address and port of srun and mpirun, under torch's names."""
import os
import re
import socket
import warnings
from collections.abc import Sequence

from ..utils.ranks import is_first_rank
from ..utils.slurm_requeue import field_of, slurm_command

#: The system gives ports from 32768 on to others.
_PORTS = range(10000, 30000)


def set_rank_environment(launcher: str) -> None:
    """Set torch's variables of a process that a launcher started.

    Args:
        launcher (str): pytorch, slurm or mpi.

    Raises:
        ValueError: if it was not started by that launcher.
    """
    if launcher == 'slurm':
        _set_slurm_environment()
    if launcher == 'mpi':
        _set_mpi_environment()
    _require(launcher, ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR',
                        'MASTER_PORT'), 'tools/dist_train.sh')


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


def _set_slurm_environment() -> None:
    """Set torch's variables from srun's."""
    given = os.environ
    _require('slurm', ('SLURM_PROCID', 'SLURM_NTASKS'),
             'tools/slurm_train.sh, which calls srun')
    os.environ.update(
        RANK=given['SLURM_PROCID'],
        WORLD_SIZE=given['SLURM_NTASKS'],
        LOCAL_RANK=given.get('SLURM_LOCALID', '0'))
    os.environ.setdefault('MASTER_PORT', str(slurm_port(
        int(given['SLURM_JOB_ID']), int(given.get('SLURM_STEP_ID', 0)))))
    if 'MASTER_ADDR' not in given:
        nodes = given.get('SLURM_STEP_NODELIST') or given['SLURM_JOB_NODELIST']
        os.environ['MASTER_ADDR'] = first_host(nodes)


def _set_mpi_environment() -> None:
    """Set torch's variables from Open MPI's."""
    given = ['OMPI_COMM_WORLD_' + name
             for name in ('RANK', 'SIZE', 'LOCAL_RANK')]
    _require('mpi', given, 'mpirun')
    os.environ.update(zip(('RANK', 'WORLD_SIZE', 'LOCAL_RANK'),
                          map(os.environ.__getitem__, given)))
    os.environ.setdefault('MASTER_PORT', '29500')


def _require(launcher: str, names: Sequence[str], starter: str) -> None:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise ValueError(
            f'--launcher {launcher}: expected {", ".join(names)} in the '
            f'environment, got no {", ".join(missing)}; start it with '
            f'{starter}, set them, or choose another --launcher')


def first_host(node_list: str) -> str:
    """The address of the first node of a list, as the other nodes reach it.

    Args:
        node_list (str): Slurm's form, such as ``node[3-5,7]``.

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
