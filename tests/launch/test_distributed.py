"""The process group, as far as one machine without a GPU can tell.

The launchers themselves are run in tests/tools/test_launchers.py and, on a
real Slurm, in tests/slurm.
"""
import os
import sys
from unittest import mock

import pytest
import torch
from mmengine.config import Config
from torch import distributed

from stepnet_mm.launch import distributed as launch
from stepnet_mm.utils.slurm import is_first_rank


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No launcher's variables, and none stays behind."""
    monkeypatch.setattr(sys, 'excepthook', sys.excepthook)
    with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES='', clear=True):
        yield
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.fixture
def one_rank():
    """At any port."""
    os.environ.update(RANK='0', WORLD_SIZE='1', LOCAL_RANK='0',
                      MASTER_ADDR='127.0.0.1', MASTER_PORT='0')


def start(launcher='pytorch', timeout=None, **settings):
    cfg = Config(dict(launcher=launcher, env_cfg=dict(dist_cfg=dict(
        backend='nccl', timeout=timeout)), **settings))
    launch.init_distributed(cfg)
    return cfg


@pytest.mark.parametrize('name, count, rank', [
    ('RANK', 'WORLD_SIZE', '1'), ('SLURM_PROCID', 'SLURM_STEP_NUM_TASKS', '0'),
    ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', '1'),
    ('SLURM_PROCID', 'SLURM_NTASKS', '0')])  # an sbatch script is one process
def test_without_a_launcher_each_process_is_the_first(recwarn, name, count,
                                                      rank):
    os.environ.update({name: rank, count: '2'})
    assert is_first_rank() == (rank == '0')
    launch.stand_alone()
    called = []
    launch.on_first_rank(called.append, 'by all')
    assert called == ['by all'] and is_first_rank()
    assert len(recwarn) == (rank == '0' and count != 'SLURM_NTASKS')


@pytest.mark.core
@pytest.mark.parametrize('given', [{}, dict(type='Mine', static_graph=True)])
def test_on_cpu(one_rank, given):
    cfg = start(find_unused_parameters=True, model_wrapper_cfg=given)
    assert distributed.get_backend() == 'gloo'
    assert cfg.model_wrapper_cfg == {
        **dict(type='MMDistributedDataParallel', device_ids=None,
               broadcast_buffers=False, find_unused_parameters=True), **given}


def test_variables_of_mpirun_and_srun(one_rank):
    for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'):
        os.environ[f'OMPI_COMM_WORLD_{name.replace("WORLD_", "")}'] = (
            os.environ.pop(name))
    start('mpi')
    assert distributed.get_world_size() == 1
    assert os.environ['LOCAL_RANK'] == '0'
    os.environ.update(SLURM_PROCID='3', SLURM_NTASKS='8', SLURM_LOCALID='1',
                      SLURM_JOB_ID='4711', SLURM_STEP_ID='2')
    launch.set_rank_environment('slurm')
    assert [os.environ[name] for name in (
        'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_PORT')] == [
            '3', '8', '1', '0']  # the port as given
    del os.environ['MASTER_PORT']
    launch.set_rank_environment('slurm')
    assert os.environ['MASTER_PORT'] == str(launch.slurm_port(4711, 2))


@pytest.mark.parametrize('launcher, text', [
    ('mpi', 'OMPI_COMM_WORLD_RANK'),
    ('pytorch', 'RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT')])
def test_without_the_launcher(launcher, text):
    with pytest.raises(ValueError, match=f'launcher {launcher}: .*no {text}'):
        start(launcher)


def test_the_timeout_of_the_config(one_rank, monkeypatch):
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


def test_an_error_names_its_rank(one_rank, capsys):
    start()
    sys.excepthook(RuntimeError, RuntimeError('boom'), None)
    said = capsys.readouterr().err
    assert 'rank 0 of 1 on ' in said and 'RuntimeError: boom\n' in said
