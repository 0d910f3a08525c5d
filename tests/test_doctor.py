"""The doctor names what is wrong, and ends with a code."""
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from torch.optim import SGD

from stepnet_mm import doctor
from stepnet_mm.steps import StepAdaptor

pytestmark = pytest.mark.core


@pytest.fixture
def report():
    return doctor.Report()


@pytest.fixture
def versions(monkeypatch):
    """Pretend that these distributions are installed, and no others."""

    def pretend(**found):
        names = {k.replace('_', '-'): v for k, v in found.items()}
        monkeypatch.setattr(
            doctor, 'distributions', lambda wanted:
            {name: names[name] for name in wanted if name in names})

    return pretend


GOOD = dict(torch='2.11.0+cu130', numpy='2.4.0', onedl_mmengine='0.10.12',
            onedl_mmcv='2.3.6', onedl_mmdetection='3.5.1',
            onedl_mmpretrain='1.3.6', torchvision='0.26', pycocotools='2')


def out(capsys):
    return capsys.readouterr().out


def test_a_stack_that_goes_together(report, versions, capsys):
    versions(**GOOD)
    found = doctor.check_versions(report)
    assert report.counts == dict(ok=8, warning=0, error=0)
    assert found['mmdet'] == '3.5.1'


def test_versions_are_numbers(report, versions):
    versions(**{**GOOD, 'onedl_mmdetection': '10.0'})
    doctor.check_versions(report)
    assert report.counts == dict(ok=8, warning=0, error=0)


@pytest.mark.parametrize('change, level, text', [
    (dict(torch='2.0.1'), 'error', 'torch 2.0.1: install >= 2.1'),
    (dict(mmcv='2.1.0'), 'error', 'mmcv is installed from onedl-mmcv and mmc'),
    (dict(onedl_mmengine='0.10.7'), 'warning', 'cannot load its own'),
    (dict(onedl_mmcv='2.1.0'), 'warning', 'numpy 2 with mmcv 2.1'),
    (dict(onedl_mmdetection='3.3.0'), 'warning', 'with mmdet 3.3, which'),
])
def test_known_conflicts(report, versions, capsys, change, level, text):
    versions(**{**GOOD, **change})
    doctor.check_versions(report)
    line, = [x for x in out(capsys).splitlines() if x.startswith(level)
             and text in x]
    assert report.counts[level] >= 1
    assert ': ' in line  # what to do


def test_nothing_installed(report, versions, capsys):
    versions()
    doctor.check_versions(report)
    text = out(capsys)
    for name in ('torch', 'mmengine', 'mmcv'):
        assert f'error    {name} is not installed' in text
    assert 'neither mmdet nor mmpretrain' in text


def test_an_environment_that_was_tried(report, versions, capsys, monkeypatch):
    monkeypatch.setattr(doctor.sys, 'version_info', (3, 11, 7))
    versions(**GOOD)
    found = doctor.check_versions(report)
    out(capsys)
    doctor.check_tried(report, found)
    assert out(capsys).startswith('ok       an environment that was tried: ')
    monkeypatch.setattr(doctor.sys, 'version_info', (3, 12, 1))
    doctor.check_tried(report, {**found, 'torch': '2.12.0', 'numpy': '2.4.0'})
    assert ('nearest is STACK=onedl, but for torch 2.12.0 (tried 2.11.0): '
            in out(capsys))


def test_python_is_within_the_range(report, capsys, monkeypatch):
    for version, level in [((3, 9, 18), 'warning'), ((3, 10, 0), 'ok'),
                           ((3, 12, 9), 'ok'), ((3, 13, 0), 'warning')]:
        monkeypatch.setattr(doctor.sys, 'version_info', version)
        doctor.check_python(report)
        assert out(capsys).split()[0] == level


def test_a_training_that_fails_is_an_error(report, capsys, monkeypatch):
    monkeypatch.setattr(StepAdaptor, 'step_size', lambda *_: 1 / 0)
    doctor.check_training(report, 'mmpretrain')
    assert ('error    mmpretrain: no training of a tiny StepResNet '
            '(ZeroDivisionError: ') in out(capsys)


def test_a_resume_that_forgets_is_an_error(report, capsys, monkeypatch):
    monkeypatch.setattr(SGD, 'load_state_dict', lambda *_: None)
    doctor.check_training(report, 'mmpretrain')
    assert ('error    mmpretrain: no training of a tiny StepResNet '
            '(RuntimeError: the resumed training ends') in out(capsys)


def test_operators_that_are_not_compiled(report, monkeypatch, capsys):
    import_module = doctor.importlib.import_module

    def without(name):
        if name == 'mmcv.ops':
            raise ModuleNotFoundError('No module named mmcv._ext')
        return import_module(name)

    monkeypatch.setattr(doctor.importlib, 'import_module', without)
    doctor.check_imports(report)
    assert 'error    mmcv has no compiled operators' in out(capsys)


def test_devices(report, monkeypatch, capsys):
    import torch
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 1)
    monkeypatch.setattr(torch.cuda, 'get_arch_list', lambda: ['sm_80'])
    monkeypatch.setattr(
        torch.cuda, 'get_device_properties', lambda _: SimpleNamespace(
            major=9, minor=0, name='H200', total_memory=139 * 2**30))
    doctor.check_devices(report)
    text = out(capsys)
    assert 'ok       GPU 0: H200, 139 GiB, sm_90' in text
    assert 'error    torch was not built for sm_90' in text


def sinfo(folder, monkeypatch, script):
    for name in ('srun', 'sinfo'):
        (folder / name).write_text(f'#!/bin/sh\n{script}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv('PATH', str(folder), prepend=':')


def test_slurm(report, tmp_path, monkeypatch, capsys):
    sinfo(tmp_path, monkeypatch, 'echo "main idle 2"')
    doctor.check_slurm(report)
    assert 'ok       Slurm, partitions with' in out(capsys)
    sinfo(tmp_path, monkeypatch, 'echo "no controller" >&2; exit 1')
    doctor.check_slurm(report)
    assert 'sinfo fails (no controller)' in out(capsys)
    monkeypatch.setenv('PATH', '')
    doctor.check_slurm(report)
    assert 'no Slurm here' in out(capsys)


def test_disk(report, tmp_path, monkeypatch, capsys):
    doctor.check_disk(report, str(tmp_path / 'not' / 'yet'))
    assert f'GiB free in {tmp_path}' in out(capsys)
    monkeypatch.setattr(doctor.shutil, 'disk_usage',
                        lambda _: SimpleNamespace(free=2**30))
    doctor.check_disk(report, str(tmp_path))
    assert 'warning  1.0 GiB free' in out(capsys)
    monkeypatch.setattr(os, 'access', lambda *_: False)
    doctor.check_disk(report, str(tmp_path))
    assert 'cannot be written: choose another' in out(capsys)


def test_weights_and_data(report, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path))
    doctor.check_weights(report)
    (tmp_path / 'hub/checkpoints').mkdir(parents=True)
    (tmp_path / 'hub/checkpoints/resnet50.pth').touch()
    doctor.check_weights(report)
    doctor.check_data(report, str(tmp_path / 'data'))
    doctor.check_data(report, str(tmp_path))
    lines = out(capsys).splitlines()
    assert [line.split()[0] for line in lines] == [
        'warning', 'ok', 'warning', 'ok'
    ]
    assert 'resnet50.pth' in lines[1] and 'hub' in lines[3]


def test_a_config_whose_data_are_missing(report, capsys):
    doctor.check_config(report, 'configs/faster_rcnn_r50_stepnet.py')
    assert 'data_root: data/coco/ does not exist' in out(capsys)
    assert report.counts['error'] == 1


def test_what_a_user_reads(tmp_path, capsys):
    code = doctor.main(['--work-dir', str(tmp_path)])
    text = out(capsys)
    # mmpretrain prints that an optional package is not there.
    lines = [line for line in text.splitlines()
             if not line.startswith('Could not import')]
    levels = {line.split()[0] for line in lines[:-1]}
    assert levels <= {'ok', 'warning', 'error'}
    assert lines[-1].split()[0] == str(
        sum(line.startswith('ok') for line in lines))
    assert code == ('error' in levels)
    assert 'scope mmpretrain: StepResNet' in text
    assert 'mmpretrain: a tiny StepResNet trains, is saved' in text


def test_it_speaks_where_a_library_does_not_import(tmp_path):
    """In a process of its own, as a user runs it."""
    (tmp_path / 'mmcv').mkdir()
    (tmp_path / 'mmcv/__init__.py').write_text('raise RuntimeError("boom")')
    path = os.pathsep.join([str(tmp_path), os.getcwd()])
    done = subprocess.run(
        [sys.executable, '-m', 'stepnet_mm.doctor'], capture_output=True,
        text=True, env=dict(os.environ, PYTHONPATH=path))
    assert done.returncode == 1
    assert 'mmcv does not import (RuntimeError: boom)' in done.stdout
    assert json.dumps('Traceback')[1:-1] not in done.stderr
