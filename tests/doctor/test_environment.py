"""Versions, GPUs and data, as far as a test can pretend them."""
import shutil
from importlib import metadata
from pathlib import Path

import pytest

from stepnet_mm.doctor import environment

ROOT = Path(__file__).resolve().parents[2]
GOOD = dict(torch='2.11.0+cu130', numpy='2.4.0', mmengine='0.10.12',
            mmcv='2.3.6', mmdet='3.5.1', mmpretrain='1.3.6')


def lines(rows):
    return [f'{row["level"]} {row["text"]}' for row in rows]


@pytest.mark.parametrize('change, expected', [
    ({}, ['ok Python 3.12.9, torch 2.11.0+cu130, ']),
    (dict(mmdet='10.0'), ['ok ', 'warning not an environment']),
    (dict(torch='2.0.1'), ['error torch 2.0.1: install >= 2.1', 'ok ',
                           'warning not an environment']),
    (dict(mmcv='2.3.6+both'),
     ['error mmcv is installed from onedl-mmcv and mmcv: pip unin', 'ok ']),
    (dict(python='3.13.0', mmdet='3.3.0'), [
        'ok ', 'warning not an environment that was tried; nearest is '
        'STACK=onedl, but for Python 3.13.0 (tried 3.11, 3.12), mmdet 3.3.0']),
    (dict(mmpretrain=None), ['warning mmpretrain is not installed', 'ok ']),
    (dict.fromkeys(GOOD), [f'error {name} is not installed' for name in (
        'torch', 'mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'numpy')] + [
            'ok Python'])])
def test_what_is_installed(monkeypatch, change, expected):
    found = {name: version for name, version in {**GOOD, **change}.items()
             if version and name != 'python'}
    # The first two: removals that broke off.
    owners = {name: [None, f'gone-{name}',
                     f'onedl-{name}' if name == 'mmcv' else name]
              for name in found}
    if '+both' in found.get('mmcv', ''):
        owners['mmcv'].append('mmcv')

    def version(name):
        if name.removeprefix('onedl-') not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name.removeprefix('onedl-')]

    monkeypatch.setattr(environment.platform, 'python_version',
                        lambda: change.get('python', '3.12.9'))
    monkeypatch.setattr(metadata, 'packages_distributions', lambda: owners)
    monkeypatch.setattr(metadata, 'version', version)
    for line, start in zip(lines(environment.versions()), expected,
                           strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize('tool, kind, expected', [
    (None, '', 'warning no GPU: '), ('nvidia-smi', '', 'error no GPU '),
    (None, 'cuda', 'error no GPU '), ('nvidia-smi', 'cpu', 'ok no GPU, ')])
def test_a_gpu_that_nothing_uses(monkeypatch, tool, kind, expected):
    monkeypatch.setattr(shutil, 'which', lambda _: tool)
    monkeypatch.setattr('torch.utils.collect_env.get_pretty_env_info',
                        lambda: 'Nvidia driver version: 550.1')
    rows = [*environment.device(kind)]
    assert lines(rows)[0].startswith(expected)
    assert rows[-1]['environment'] == ['Nvidia driver version: 550.1']


def test_a_config_without_a_model(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text('data = 1')
    line, = lines(environment.config(str(path)))
    assert 'expected a config with a model' in line and 'report' not in line


def test_a_config_whose_data_are_missing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the checkout may have data
    reads, *missing = lines(environment.config(
        str(ROOT / 'configs/faster_rcnn_r50_stepnet.py')))
    assert reads.startswith('ok ')
    for split, line in zip(('train', 'val', 'test'), missing, strict=True):
        assert line.startswith(f'error {split}_dataloader: ')
