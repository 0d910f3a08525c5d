"""GPUs, Slurm, disk and data, as far as a test can pretend them."""
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.doctor import machine

ROOT = Path(__file__).resolve().parents[2]


def lines(*rows):
    return '\n'.join(f'{row["level"]} {row["text"]}' for row in rows)


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 1)
    monkeypatch.setattr(torch.cuda, 'get_arch_list', lambda: ['sm_80'])
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties', lambda _: SimpleNamespace(
            major=9, minor=0, name='H200', total_memory=139 * 2**30))
    text = lines(*machine._gpus(True))
    assert 'ok GPU 0: H200, 139 GiB, sm_90' in text
    assert 'error torch was not built for sm_90' in text


@pytest.mark.parametrize('tool, gpu, operators', [
    (None, 'warning no GPU: training runs on CPU, with gloo', ''),
    ('nvidia-smi', 'error no GPU that torch can use', 'error mmcv was compil')
])
def test_a_driver_that_nothing_uses(monkeypatch, tool, gpu, operators):
    monkeypatch.setattr(shutil, 'which', lambda _: tool)
    monkeypatch.setitem(sys.modules, 'mmcv.ops', SimpleNamespace(
        get_compiling_cuda_version=lambda: 'not available'))
    monkeypatch.setattr('torch.utils.collect_env.get_pretty_env_info',
                        lambda: 'Nvidia driver version: 550.1')
    text = lines(*machine.device(''))
    assert text.startswith(gpu) and 'driver 550.1' in text
    assert lines(*machine.operators('')).startswith(operators)


@pytest.mark.parametrize('script, expected', [
    ('echo "main idle 2"', 'ok Slurm, partitions with state and nodes: main i'
     'dle 2'), ('echo "no controller" >&2; exit 1', 'got no controller: is ')])
def test_slurm(tmp_path, monkeypatch, script, expected):
    for name in ('srun', 'sinfo'):
        (tmp_path / name).write_text(f'#!/bin/sh\n{script}\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=':')
    assert expected in lines(machine.slurm())
    monkeypatch.setenv('PATH', '')
    assert lines(machine.slurm()) == 'ok no Slurm here'


def test_room(tmp_path, monkeypatch):
    folder = tmp_path / 'not' / 'yet'
    assert f'GiB free in {tmp_path}' in lines(machine.disk(str(folder)))
    assert lines(machine.shared_memory(str(tmp_path))).startswith('ok')
    monkeypatch.setattr(shutil, 'disk_usage',
                        lambda _: SimpleNamespace(free=2**30, total=2**26))
    assert 'warning 1.0 GiB free' in lines(machine.disk(str(folder)))
    assert 'warning 0.06 GiB of shared memory' in lines(
        machine.shared_memory(str(tmp_path)))
    monkeypatch.setattr(os, 'access', lambda *_: False)
    assert 'error --work-dir: ' in lines(machine.disk(str(folder)))


def test_a_config_whose_data_are_missing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the checkout may have data
    reads, *missing = machine.config(
        str(ROOT / 'configs/faster_rcnn_r50_stepnet.py'))
    assert reads['level'] == 'ok'
    assert [row['level'] for row in missing] == ['error'] * 3
    assert 'data/coco/annotations/instances_train2017.json' in lines(*missing)


def test_the_data_of_each_split_are_looked_at(tmp_path):
    for split in ('train', 'val', 'test'):
        path = tmp_path / f'{split}.py'
        path.write_text(
            f'{split}_dataloader = dict(dataset=dict('
            f"type='mmdet.CocoDataset', ann_file='{tmp_path}/nowhere'))")
        assert re.search(f'{split}_dataloader: .*nowhere',
                         lines(*machine.config(str(path))))
