"""Versions that do not go together are named."""
from importlib import metadata

import pytest

from stepnet_mm.doctor import versions

GOOD = dict(torch='2.11.0+cu130', numpy='2.4.0', mmengine='0.10.12',
            mmcv='2.3.6', mmdet='3.5.1', mmpretrain='1.3.6',
            torchvision='0.26', pycocotools='2')


@pytest.fixture
def check(monkeypatch):
    """check(python, name=version, ...) -> the rows where these are there."""
    def check(python, **found):
        # The first two: removals that broke off.
        owners = {name: [None, f'gone-{name}',
                         f'onedl-{name}' if name == 'mmcv' else name]
                  for name in found}
        if '+' in found.get('mmcv', ''):
            owners['mmcv'].append('mmcv')
        monkeypatch.setattr(versions.platform, 'python_version',
                            lambda: python)
        monkeypatch.setattr(versions.metadata, 'packages_distributions',
                            lambda: owners)

        def version(name):
            if name.removeprefix('onedl-') not in found:
                raise metadata.PackageNotFoundError(name)
            return found[name.removeprefix('onedl-')]

        monkeypatch.setattr(versions.metadata, 'version', version)
        return [f'{row["level"]} {row["text"]}' for row in versions.check()]

    return check


def test_a_stack_that_goes_together(check):
    lines = check('3.11.7', **GOOD)
    assert len(lines) == 10 and all(x.startswith('ok ') for x in lines)
    assert 'ok onedl-mmcv 2.3.6' in lines
    assert lines[-1] == 'ok an environment that was tried: STACK=onedl'


def test_versions_are_numbers(check):
    assert not [x for x in check('3.11.7', **{**GOOD, 'mmdet': '10.0'})
                if x.startswith('error')]


@pytest.mark.parametrize('change, level, text', [
    (dict(torch='2.0.1'), 'error', 'torch 2.0.1: install >= 2.1'),
    (dict(mmcv='2.3.6+both'), 'error',
     'mmcv is installed from onedl-mmcv and mmcv: pip uninstall'),
    (dict(mmcv='2.1.0'), 'warning', 'numpy 2 with mmcv 2.1'),
    (dict(mmdet='3.3.0', mmcv='2.1.0'), 'warning',
     'nearest is STACK=onedl, but for mmcv 2.1.0 (tried 2.3.6), mmdet 3.3.0'),
    (dict(python='3.9.18'), 'warning', 'Python 3.9.18: install 3.10 or later'),
    (dict(python='3.13.0'), 'warning', 'Python 3.13.0: install 3.10 or later'),
])
def test_known_conflicts(check, change, level, text):
    line, = [x for x in check(**{'python': '3.12.9', **GOOD, **change})
             if x.startswith(level) and text in x]
    assert ': ' in line  # what to do


def test_nothing_installed(check):
    lines = check('3.10.0')
    assert lines[0] == 'ok Python 3.10.0'
    for name in ('torch', 'mmengine', 'mmcv'):
        assert any(x.startswith(f'error {name} is not') for x in lines)
    assert any('neither mmdet nor mmpretrain' in x for x in lines)
