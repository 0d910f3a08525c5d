"""Configs, checkpoints and import paths of earlier versions still do."""
import importlib
import pkgutil
import shutil
import sys
from pathlib import Path

import pytest

import stepnet_mm
from stepnet_mm.moved import GONE, MOVED, OLD_NAMES, RENAMED

ROOT = Path(__file__).resolve().parents[1]
#: A config as version 0.1 dumped it, and the second of its four iterations.
CONFIG, CHECKPOINT = [
    ROOT / 'tests' / 'data' / f'version_0_1{e}' for e in ('.py', '.pth')
]


def import_anew(old):
    sys.modules.pop(f'stepnet_mm.{old}', None)
    with pytest.warns(DeprecationWarning,
                      match=rf'{old} has moved to stepnet_mm\.'):
        return importlib.import_module(f'stepnet_mm.{old}')


def today(place):
    return pkgutil.resolve_name(f'stepnet_mm.{place}')


def test_an_old_path_is_todays_module():
    for old, new in MOVED.items():
        assert import_anew(old) is today(new)


def test_an_old_folder_gives_todays_names():
    for old, folders in GONE.items():
        folder = import_anew(old)
        for new, names in folders.items():
            for name in names:
                assert getattr(folder, name) is today(f'{new}.{name}')


def test_an_old_name_warns_and_is_todays():
    for old, names in RENAMED.items():
        module = import_anew(old)
        for name, place in names.items():
            assert getattr(module, name) is today(place)
    for place, moved in OLD_NAMES.items():
        module = today(place)
        for old, new in moved.items():
            with pytest.warns(DeprecationWarning, match=(
                    f'{place}.{old} has moved to stepnet_mm.{new};')):
                assert getattr(module, old) is today(new)
        assert not hasattr(module, 'gone')


def test_old_folders_are_attributes():
    with pytest.warns(DeprecationWarning, match='engine has moved'):
        sys.modules.pop(f'stepnet_mm.{min(GONE)}', None)
        vars(stepnet_mm).pop(min(GONE), None)
        folder = getattr(stepnet_mm, min(GONE))
    assert folder.TNSHook is stepnet_mm.hooks.TNSHook


@pytest.mark.core
def test_a_training_of_version_0_1_goes_on(tmp_path, monkeypatch):
    pytest.importorskip('mmdet')
    from stepnet_mm.config import harden, read_config
    from stepnet_mm.datasets import make_mini_coco
    from stepnet_mm.launch.entry import build_runner
    make_mini_coco(tmp_path / 'mini_coco', train=4, val=3, size=64)
    monkeypatch.chdir(tmp_path)
    shutil.copy(CONFIG, tmp_path)
    cfg = harden(read_config(CONFIG.name, work_dir='work'))
    cfg.resume, cfg.load_from = True, str(CHECKPOINT)
    runner = build_runner(cfg)
    runner.train()
    assert runner.iter == 4
    history = runner.message_hub.get_info('stiffness_history')
    assert [entry['step'] for entry in history] == [1, 2, 3, 4]


def test_a_record_of_version_0_1_reads():
    from stepnet_mm.stiffness import read_stiffness_record
    record = read_stiffness_record(ROOT / 'tests/data/version_0_1.jsonl')
    assert record.nsi.tolist() == [
        [.5, .25, .75], [float('inf'), .5, .5], [.125, .25, .25]]
    assert record.step[:, 1:].tolist() == [[.25, .5]] * 3
    assert record.header.blocks[0] == 'backbone.layer1.1'
    assert record.header.stages == 4
