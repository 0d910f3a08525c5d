"""GPUs, Slurm and the disk, as far as a test can pretend them."""
import os
import shutil
from types import SimpleNamespace

import torch

from stepnet_mm.launch import machine


def test_devices(report, monkeypatch, printed):
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 1)
    monkeypatch.setattr(torch.cuda, 'get_arch_list', lambda: ['sm_80'])
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties', lambda _: SimpleNamespace(
            major=9, minor=0, name='H200', total_memory=139 * 2**30))
    machine.check_devices(report)
    text = printed()
    assert 'ok       GPU 0: H200, 139 GiB, sm_90' in text
    assert 'error    torch was not built for sm_90' in text


def sinfo(folder, monkeypatch, script):
    for name in ('srun', 'sinfo'):
        (folder / name).write_text(f'#!/bin/sh\n{script}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv('PATH', str(folder), prepend=':')


def test_slurm(report, tmp_path, monkeypatch, printed):
    sinfo(tmp_path, monkeypatch, 'echo "main idle 2"')
    machine.check_slurm(report)
    assert 'ok       Slurm, partitions with' in printed()
    sinfo(tmp_path, monkeypatch, 'echo "no controller" >&2; exit 1')
    machine.check_slurm(report)
    assert 'sinfo fails (no controller)' in printed()
    monkeypatch.setenv('PATH', '')
    machine.check_slurm(report)
    assert 'no Slurm here' in printed()


def test_shared_memory(report, tmp_path, monkeypatch, printed):
    machine.check_shared_memory(report, str(tmp_path / 'none'))
    assert not printed()
    machine.check_shared_memory(report, str(tmp_path))
    assert 'ok ' in printed()
    monkeypatch.setattr(shutil, 'disk_usage',
                        lambda _: SimpleNamespace(total=2**26))
    machine.check_shared_memory(report, str(tmp_path))
    assert 'warning  0.06 GiB of shared memory' in printed()


def test_disk(report, tmp_path, monkeypatch, printed):
    machine.check_disk(report, str(tmp_path / 'not' / 'yet'))
    assert f'GiB free in {tmp_path}' in printed()
    monkeypatch.setattr(shutil, 'disk_usage',
                        lambda _: SimpleNamespace(free=2**30))
    machine.check_disk(report, str(tmp_path))
    assert 'warning  1.0 GiB free' in printed()
    monkeypatch.setattr(os, 'access', lambda *_: False)
    machine.check_disk(report, str(tmp_path))
    assert 'cannot be written: choose another' in printed()
