"""The process group, as far as one machine without a GPU can tell.

The launchers themselves are run in tests/tools/test_launchers.py and, on a
real Slurm, in tests/slurm.
"""
import io
import os
import sys
import time
from datetime import timedelta

import pytest
import torch
from lab import free_ports
from mmengine.config import Config
from ranks import run_on_ranks
from torch import distributed

from stepnet_mm.launch import distributed as launch
from stepnet_mm.launch.distributed import (
    init_distributed,
    on_first_rank,
    stand_alone,
)
from stepnet_mm.utils.ranks import is_first_rank
from stepnet_mm.utils.slurm import slurm_port


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No launcher's variables, and none stays behind."""
    before = dict(os.environ)
    for name in list(os.environ):
        if name.startswith('SLURM') or name in (
                'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE',
                'MASTER_ADDR', 'MASTER_PORT'):
            del os.environ[name]
    monkeypatch.setattr(sys, 'excepthook', sys.excepthook)
    yield
    if distributed.is_initialized():
        distributed.destroy_process_group()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def port():
    number, = free_ports(1)
    os.environ.update(RANK='0', WORLD_SIZE='1', LOCAL_RANK='0',
                      MASTER_ADDR='127.0.0.1', MASTER_PORT=str(number))
    return number


def start(launcher='pytorch', timeout=None, **settings):
    cfg = Config(dict(launcher=launcher, env_cfg=dict(dist_cfg=dict(
        backend='nccl', timeout=timeout)), **settings))
    init_distributed(cfg)
    return cfg


STARTED = [dict(RANK='{}', WORLD_SIZE='2'),
           dict(SLURM_PROCID='{}', SLURM_STEP_NUM_TASKS='2'),
           dict(OMPI_COMM_WORLD_RANK='{}', OMPI_COMM_WORLD_SIZE='2')]


@pytest.mark.parametrize('started', STARTED)
@pytest.mark.parametrize('rank', [0, 1])
def test_without_a_launcher_each_process_is_the_first(rank, started, recwarn):
    os.environ.update({k: v.format(rank) for k, v in started.items()})
    stand_alone()
    called = []
    on_first_rank(called.append, 'by all')
    assert called == ['by all'] and is_first_rank()
    assert [str(w.message)[:20] for w in recwarn] == (1 - rank) * [
        '--launcher: expected']


@pytest.mark.parametrize('started', [
    dict(RANK='0', WORLD_SIZE='1'),
    # Of an sbatch script, which is one process whatever the job has.
    dict(SLURM_PROCID='0', SLURM_NTASKS='16')])
def test_one_process_needs_no_launcher(started, recwarn):
    os.environ.update(started)
    stand_alone()
    assert not recwarn.list


@pytest.mark.core
@pytest.mark.parametrize('given, wrapper', [
    ({}, dict(type='MMDistributedDataParallel')),
    (dict(model_wrapper_cfg=dict(type='Mine', static_graph=True)),
     dict(type='Mine', static_graph=True))])
def test_on_cpu(port, capsys, given, wrapper):
    cfg = start(find_unused_parameters=True, **given)
    assert distributed.get_backend() == 'gloo'
    assert cfg.model_wrapper_cfg == dict(
        device_ids=None, broadcast_buffers=False, find_unused_parameters=True,
        **wrapper)
    sys.excepthook(RuntimeError, RuntimeError('boom'), None)
    said = capsys.readouterr().err
    assert 'rank 0 of 1 on ' in said and 'RuntimeError: boom\n' in said


def test_under_mpirun(port):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'):
        del os.environ[name]
    os.environ.update(
        OMPI_COMM_WORLD_RANK='0', OMPI_COMM_WORLD_SIZE='1',
        OMPI_COMM_WORLD_LOCAL_RANK='0')
    start('mpi')
    assert distributed.get_world_size() == 1
    assert os.environ['LOCAL_RANK'] == '0'


def test_slurm_variables(port):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT'):
        del os.environ[name]
    os.environ.update(SLURM_PROCID='0', SLURM_NTASKS='1', SLURM_LOCALID='0',
                      SLURM_JOB_ID='4711', SLURM_STEP_ID='2')
    launch._set_slurm_environment()
    assert os.environ['MASTER_PORT'] == str(slurm_port(4711, 2))
    os.environ['MASTER_PORT'] = str(port)  # as given
    start('slurm')
    assert distributed.is_initialized()
    assert os.environ['MASTER_PORT'] == str(port)


def test_ports_of_jobs_and_steps_differ():
    ports = {slurm_port(job, step) for job in range(300, 400)
             for step in range(10)} | {slurm_port(2**31, 4)}
    assert len(ports) == 1001
    assert all(10000 <= port < 30000 for port in ports)


@pytest.mark.parametrize('launcher, text', [
    ('slurm', 'SLURM_PROCID, SLURM_NTASKS'),
    ('mpi', 'OMPI_COMM_WORLD_RANK'),
    ('pytorch', 'RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT')])
def test_without_the_launcher(launcher, text):
    with pytest.raises(ValueError, match=f'launcher {launcher}: .*no {text}'):
        start(launcher)


def test_a_port_that_is_taken(port):
    import socket
    with socket.socket() as other:
        other.bind(('0.0.0.0', port))
        other.listen()
        with pytest.raises(ConnectionError, match=(
                f'MASTER_PORT: .* at 127.0.0.1:{port}, got .*already in use')):
            start()


def test_ranks_that_do_not_come(port):
    os.environ['WORLD_SIZE'] = '2'
    with pytest.raises(ConnectionError, match='2 ranks to meet .* in rank 0;'):
        start(timeout=1)


def test_the_timeout_of_the_config(port, monkeypatch):
    seen = []
    monkeypatch.setattr(distributed, 'init_process_group',
                        lambda *_, timeout: seen.append(timeout.seconds))
    for seconds in 7, None:
        start(timeout=seconds)
    assert seen == [7, 1800]


@pytest.mark.parametrize('count, local, torchrun, expected', [
    (8, 3, {}, 3), (1, 3, {}, 0),
    (2, 2, {}, None), (1, 1, dict(LOCAL_WORLD_SIZE='2'), None)])
def test_the_gpu_of_a_rank(monkeypatch, count, local, torchrun, expected):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: count)
    os.environ.update(LOCAL_RANK=str(local), **torchrun)
    if expected is None:
        with pytest.raises(ValueError, match=f'GPUs, got a rank {local} ther'):
            launch._local_gpu()
    else:
        assert launch._local_gpu() == expected
        assert os.environ['LOCAL_RANK'] == str(expected)


def _wait_for_the_other(rank, rendezvous, texts):
    os.environ.update(RANK=str(rank), WORLD_SIZE='2')
    distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank, world_size=2,
        timeout=timedelta(seconds=1))
    if rank:
        while not texts:
            time.sleep(.1)
        return
    sys.stderr = io.StringIO()
    try:
        distributed.all_reduce(torch.zeros(1))
    except RuntimeError:
        launch._name_the_rank(*sys.exc_info())
    texts.append(sys.stderr.getvalue())


def test_a_rank_that_stands_still(tmp_path):
    texts = torch.multiprocessing.get_context('fork').Manager().list()
    run_on_ranks(_wait_for_the_other, (tmp_path / 'meet', texts), 2)
    text, = texts
    assert text.startswith('rank 0 of 2 on ')
    assert text.splitlines()[-1].startswith('env_cfg.dist_cfg.timeout: ')
    assert 'rank 0 of 2' in text.splitlines()[-1]
