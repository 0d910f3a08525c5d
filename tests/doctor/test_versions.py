"""Versions and imports that do not go (together) are named."""
import sys
from types import SimpleNamespace

import pytest

from stepnet_mm.doctor import versions

GOOD = dict(torch='2.11.0+cu130', numpy='2.4.0', onedl_mmengine='0.10.12',
            onedl_mmcv='2.3.6', onedl_mmdetection='3.5.1',
            onedl_mmpretrain='1.3.6', torchvision='0.26', pycocotools='2')


@pytest.fixture
def check(monkeypatch):
    """check(name=version, ...) -> lines where these alone are installed."""
    monkeypatch.setattr(sys, 'version_info', (3, 11, 7))

    def check(**found):
        names = {k.replace('_', '-'): v for k, v in found.items()}

        def version(name):
            if name not in names:
                raise versions.metadata.PackageNotFoundError(name)
            return names[name]

        monkeypatch.setattr(versions, 'metadata', SimpleNamespace(
            version=version, PackageNotFoundError=(
                versions.metadata.PackageNotFoundError)))
        return [f'{row["level"]} {row["text"]}' for row in versions.check()]

    return check


def test_a_stack_that_goes_together(check):
    lines = check(**GOOD)
    assert len(lines) == 10 and all(x.startswith('ok ') for x in lines)
    assert 'ok onedl-mmdetection 3.5.1' in lines
    assert lines[-1] == 'ok an environment that was tried: STACK=onedl'


def test_versions_are_numbers(check):
    assert not [x for x in check(**{**GOOD, 'onedl_mmdetection': '10.0'})
                if x.startswith('error')]


@pytest.mark.parametrize('change, level, text', [
    (dict(torch='2.0.1'), 'error', 'torch 2.0.1: install >= 2.1'),
    (dict(mmcv='2.1.0'), 'error', 'mmcv is installed from onedl-mmcv and mmc'),
    (dict(onedl_mmcv='2.1.0'), 'warning', 'numpy 2 with mmcv 2.1'),
    (dict(onedl_mmdetection='3.3.0', onedl_mmcv='2.1.0'), 'warning',
     'nearest is STACK=onedl, but for mmcv 2.1.0 (tried 2.3.6), mmdet 3.3.0'),
    (dict(torch='2.12.0'), 'warning', 'nearest is STACK=onedl, but for torch '
     '2.12.0 (tried 2.11.0): '),
])
def test_known_conflicts(check, change, level, text):
    line, = [x for x in check(**{**GOOD, **change})
             if x.startswith(level) and text in x]
    assert ': ' in line  # what to do


def test_nothing_installed(check):
    lines = check()
    for name in ('torch', 'mmengine', 'mmcv'):
        assert any(x.startswith(f'error {name} is not') for x in lines)
    assert any('neither mmdet nor mmpretrain' in x for x in lines)


def test_python_is_within_the_range(check, monkeypatch):
    for version, level in [((3, 9, 18), 'warning'), ((3, 10, 0), 'ok'),
                           ((3, 12, 9), 'ok'), ((3, 13, 0), 'warning')]:
        monkeypatch.setattr(sys, 'version_info', version)
        assert check(**GOOD)[0].split()[0] == level
