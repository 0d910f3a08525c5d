"""Configs, checkpoints and import paths of earlier versions still do."""
import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
from mmengine.utils import digit_version

import stepnet_mm
from stepnet_mm.moved import GONE, MOVED, OLD_NAMES, RENAMED

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[1]
#: A config as version 0.1 dumped it, and the second of its four iterations.
CONFIG, CHECKPOINT = [
    ROOT / 'tests' / 'data' / f'version_0_1{e}' for e in ('.py', '.pth')
]


@pytest.mark.parametrize('old', sorted(MOVED))
def test_an_old_path_is_todays_module(old):
    sys.modules.pop(f'stepnet_mm.{old}', None)
    with pytest.warns(
            DeprecationWarning,
            match=f'{old} has moved to stepnet_mm.{MOVED[old]};'):
        found = importlib.import_module(f'stepnet_mm.{old}')
    assert found is importlib.import_module(f'stepnet_mm.{MOVED[old]}')


@pytest.mark.parametrize('old', sorted(RENAMED))
@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_an_old_name_is_todays(old):
    sys.modules.pop(f'stepnet_mm.{old}', None)
    module = importlib.import_module(f'stepnet_mm.{old}')
    for name, place in RENAMED[old].items():
        home, _, today = place.rpartition('.')
        assert getattr(module, name) is getattr(
            importlib.import_module(f'stepnet_mm.{home}'), today)


@pytest.mark.parametrize('old', sorted(GONE))
def test_an_old_folder_gives_todays_names(old):
    sys.modules.pop(f'stepnet_mm.{old}', None)
    with pytest.warns(
            DeprecationWarning,
            match=f'{old} has moved to stepnet_mm.hooks'):
        folder = importlib.import_module(f'stepnet_mm.{old}')
    for new, names in GONE[old].items():
        for name in names:
            assert getattr(folder, name) is getattr(
                getattr(stepnet_mm, new), name)


@pytest.mark.parametrize('place, old, new', [
    (place, *names) for place, moved in OLD_NAMES.items()
    for names in moved.items()])
def test_an_old_name_warns_and_is_todays(place, old, new):
    module = importlib.import_module(f'stepnet_mm.{place}')
    with pytest.warns(DeprecationWarning,
                      match=f'{place}.{old} has moved to stepnet_mm.{new};'):
        found = getattr(module, old)
    folder, _, name = new.rpartition('.')
    assert found is getattr(
        importlib.import_module(f'stepnet_mm.{folder}'), name)
    assert not hasattr(module, 'gone')


def test_old_folders_are_attributes():
    with pytest.warns(DeprecationWarning, match='engine has moved'):
        sys.modules.pop(f'stepnet_mm.{min(GONE)}', None)
        vars(stepnet_mm).pop(min(GONE), None)
        folder = getattr(stepnet_mm, min(GONE))
    assert folder.TNSHook is stepnet_mm.hooks.TNSHook


def test_nothing_here_uses_an_old_path():
    old = re.compile('|'.join(rf'stepnet_mm\.{p}\b' for p in (*MOVED, *GONE)))
    files = [path for folder in ('stepnet_mm', 'tools', 'tests', 'configs')
             for path in (ROOT / folder).rglob('*.py')]
    assert len(files) > 200
    assert not [path for path in files if old.search(path.read_text())]


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


def test_what_is_old_goes_with_a_later_version():
    package = Path(stepnet_mm.__file__).parent
    text = ' '.join(re.sub(r"'\s*'", '', path.read_text())
                    for path in package.rglob('*.py'))
    said = re.findall(r'will go with version ([\d.]+)', text)
    today = digit_version(stepnet_mm.__version__)
    assert len(said) == 3
    assert all(digit_version(version) > today for version in said)


def test_a_record_of_version_0_1_reads():
    from stepnet_mm.stiffness import read_stiffness_record
    record = read_stiffness_record(ROOT / 'tests/data/version_0_1.jsonl')
    assert record.nsi.tolist() == [
        [.5, .25, .75], [float('inf'), .5, .5], [.125, .25, .25]]
    assert record.step[:, 1:].tolist() == [[.25, .5]] * 3
    assert record.header.blocks[0] == 'backbone.layer1.1'
    assert record.header.stages == 4
