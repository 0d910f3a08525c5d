"""Versions that are missing, too old or do not go together are named."""
import sys

import pytest

from stepnet_mm.launch import versions

GOOD = dict(torch='2.11.0+cu130', numpy='2.4.0', onedl_mmengine='0.10.12',
            onedl_mmcv='2.3.6', onedl_mmdetection='3.5.1',
            onedl_mmpretrain='1.3.6', torchvision='0.26', pycocotools='2')


@pytest.fixture
def installed(monkeypatch):
    """Pretend that these distributions are installed, and no others."""

    def pretend(**found):
        names = {k.replace('_', '-'): v for k, v in found.items()}
        monkeypatch.setattr(
            versions, 'distributions', lambda wanted:
            {name: names[name] for name in wanted if name in names})

    return pretend


def test_a_stack_that_goes_together(report, installed, printed):
    installed(**GOOD)
    found = versions.check_versions(report)
    assert report.counts == dict(ok=8, skipped=0, warning=0, error=0)
    assert found['mmdet'] == '3.5.1'


def test_versions_are_numbers(report, installed):
    installed(**{**GOOD, 'onedl_mmdetection': '10.0'})
    versions.check_versions(report)
    assert report.counts == dict(ok=8, skipped=0, warning=0, error=0)


@pytest.mark.parametrize('change, level, text', [
    (dict(torch='2.0.1'), 'error', 'torch 2.0.1: install >= 2.1'),
    (dict(mmcv='2.1.0'), 'error', 'mmcv is installed from onedl-mmcv and mmc'),
    (dict(onedl_mmengine='0.10.7'), 'warning', 'cannot load its own'),
    (dict(onedl_mmcv='2.1.0'), 'warning', 'numpy 2 with mmcv 2.1'),
    (dict(onedl_mmdetection='3.3.0'), 'warning', 'with mmdet 3.3, which'),
])
def test_known_conflicts(report, installed, printed, change, level,
                         text):
    installed(**{**GOOD, **change})
    versions.check_versions(report)
    line, = [x for x in printed().splitlines() if x.startswith(level)
             and text in x]
    assert report.counts[level] >= 1
    assert ': ' in line  # what to do


def test_nothing_installed(report, installed, printed):
    installed()
    versions.check_versions(report)
    text = printed()
    for name in ('torch', 'mmengine', 'mmcv'):
        assert f'error    {name} is not installed' in text
    assert 'neither mmdet nor mmpretrain' in text


def test_an_environment_that_was_tried(report, installed, printed,
                                       monkeypatch):
    monkeypatch.setattr(sys, 'version_info', (3, 11, 7))
    installed(**GOOD)
    found = versions.check_versions(report)
    printed()
    versions.check_tried(report, found)
    assert printed().startswith('ok       an environment that was tried: ')
    monkeypatch.setattr(sys, 'version_info', (3, 12, 1))
    versions.check_tried(report, {**found, 'torch': '2.12.0',
                                  'numpy': '2.4.0'})
    assert ('nearest is STACK=onedl, but for torch 2.12.0 (tried 2.11.0): '
            in printed())


def test_python_is_within_the_range(report, printed, monkeypatch):
    for version, level in [((3, 9, 18), 'warning'), ((3, 10, 0), 'ok'),
                           ((3, 12, 9), 'ok'), ((3, 13, 0), 'warning')]:
        monkeypatch.setattr(sys, 'version_info', version)
        versions.check_python(report)
        assert printed().split()[0] == level
