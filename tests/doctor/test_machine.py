"""GPUs, Slurm, disk and data, as far as a test can pretend them."""
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

from stepnet_mm.doctor import machine

ROOT = Path(__file__).resolve().parents[2]


def line(row):
    return f'{row["level"]} {row["text"]}'


def lines(rows):
    return '\n'.join(map(line, rows))


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 1)
    monkeypatch.setattr(torch.cuda, 'get_arch_list', lambda: ['sm_80'])
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties', lambda _: SimpleNamespace(
            major=9, minor=0, name='H200', total_memory=139 * 2**30))
    text = lines(machine.device('cuda'))
    assert 'ok GPU 0: H200, 139 GiB, sm_90' in text
    assert 'error torch was not built for sm_90' in text


def test_a_driver_that_torch_does_not_see(monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda _: None)
    assert lines(machine.device('')).startswith('warning no GPU: training')
    monkeypatch.setattr(shutil, 'which', lambda _: 'nvidia-smi')
    assert lines(machine.device('')).startswith('error no GPU that torch ')


def test_operators_for_a_cpu_where_a_gpu_is(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mmcv.ops', SimpleNamespace(
        get_compiling_cuda_version=lambda: 'not available'))
    monkeypatch.setattr(shutil, 'which', lambda _: None)
    assert not [*machine.operators('')]
    monkeypatch.setattr(shutil, 'which', lambda _: 'nvidia-smi')
    assert lines(machine.operators('')).startswith(
        'error mmcv was compiled for the CPU only: ')


def sinfo(folder, monkeypatch, script):
    for name in ('srun', 'sinfo'):
        (folder / name).write_text(f'#!/bin/sh\n{script}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv('PATH', str(folder), prepend=':')


def test_slurm(tmp_path, monkeypatch):
    sinfo(tmp_path, monkeypatch, 'echo "main idle 2"')
    assert line(machine.slurm()).endswith('state and nodes: main idle 2')
    sinfo(tmp_path, monkeypatch, 'echo "no controller" >&2; exit 1')
    assert 'sinfo fails (no controller)' in line(machine.slurm())
    monkeypatch.setenv('PATH', '')
    assert 'ok no Slurm here' in line(machine.slurm())


def test_shared_memory(tmp_path, monkeypatch):
    assert machine.shared_memory(str(tmp_path))['level'] == 'ok'
    monkeypatch.setattr(shutil, 'disk_usage',
                        lambda _: SimpleNamespace(total=2**26))
    assert 'warning 0.06 GiB of shared memory' in line(
        machine.shared_memory(str(tmp_path)))


def test_disk(tmp_path, monkeypatch):
    folder = tmp_path / 'not' / 'yet'
    assert f'GiB free in {tmp_path}' in line(machine.disk(folder))
    monkeypatch.setattr(shutil, 'disk_usage',
                        lambda _: SimpleNamespace(free=2**30))
    assert 'warning 1.0 GiB free' in line(machine.disk(tmp_path))
    monkeypatch.setattr(os, 'access', lambda *_: False)
    assert 'cannot be written: choose another' in line(machine.disk(tmp_path))


def test_weights_and_data(tmp_path, monkeypatch):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))

    def found():
        return [line(row) for row in machine.check('.', str(tmp_path))][-2:]

    assert [text.partition(' ')[0] for text in found()] == ['warning'] * 2
    (tmp_path / 'hub/checkpoints').mkdir(parents=True)
    (tmp_path / 'hub/checkpoints/resnet50.pth').touch()
    weights, data = found()
    assert weights.startswith('ok') and weights.endswith('resnet50.pth')
    assert data.startswith('ok') and data.endswith('hub')


def test_a_config_whose_data_are_missing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the checkout may have data
    reads, *missing = machine.config(
        str(ROOT / 'configs/faster_rcnn_r50_stepnet.py'))
    assert reads['level'] == 'ok'
    assert [row['level'] for row in missing] == ['error'] * 3
    assert 'data/coco/annotations/instances_train2017.json' in lines(missing)


def test_the_data_of_each_split_are_looked_at(tmp_path):
    for split in ('train', 'val', 'test'):
        path = tmp_path / f'{split}.py'
        path.write_text(
            f'{split}_dataloader = dict(dataset=dict('
            f"type='mmdet.CocoDataset', ann_file='{tmp_path}/nowhere'))")
        assert re.search(f'{split}_dataloader: .*nowhere',
                         lines(machine.config(str(path))))
