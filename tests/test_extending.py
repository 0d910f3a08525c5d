"""docs/extending.md: all its code runs, and does what the page says."""
import contextlib
import importlib
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS

from stepnet_mm.recording import find_residual_blocks
from stepnet_mm.stiffness import read_stiffness_record

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs/extending.md').read_text()
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', PAGE, re.M | re.S)
MODULES = ('my_step', 'my_config', 'test_my_step')


def module_of(source):
    """What a block is called that is a file, '' for one that is none."""
    named = re.match(r'# (\w+)\.py\n', source)
    return named[1] if named else ''


def run_command(line, monkeypatch):
    """As a shell does, but in this process."""
    variable, python, path, *arguments = shlex.split(line)
    assert (variable, python) == ('PYTHONPATH=.', 'python')
    monkeypatch.setattr(sys, 'argv', [path, *arguments])
    runpy.run_path(str(ROOT / path), run_name='__main__')


def public(module):
    return {name: value for name, value in vars(module).items()
            if not name.startswith('__')}


def run_page(monkeypatch):
    """The names that the blocks leave behind, files imported."""
    names = {}
    for language, source in BLOCKS:
        name = module_of(source)
        if language == 'bash':
            run_command(source.strip(), monkeypatch)
        elif name:
            Path(f'{name}.py').write_text(source)
            names.update(public(importlib.import_module(name)))
        else:
            exec(compile(source, 'extending.md', 'exec'), names)
    return names


@pytest.fixture(scope='module')
def page(tmp_path_factory):
    """(names, what was printed, the folder) of one run of the page."""
    for library in ('mmdet', 'mmpretrain'):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp('extending')
    printed = io.StringIO()
    torch.manual_seed(0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(str(folder))
        with contextlib.redirect_stdout(printed):
            names = run_page(monkeypatch)
    yield names, printed.getvalue(), folder
    MODELS.module_dict.pop('DampedStep')
    for name in MODULES:
        sys.modules.pop(name)


def test_what_the_page_leaves_behind(page):
    names, printed, folder = page
    for name, test in names.items():
        if name.startswith('test_'):
            test()
    record = read_stiffness_record(folder / 'my_net.jsonl')
    assert record.nsi.shape == (4, 12)
    assert (record.nsi > 0).all() and (record.step == 1).all()
    counted = [block.step is not None
               for block in find_residual_blocks(names['stock'])]
    assert counted == [False] * 3 + [True] * 13
    assert 'Bottleneck  residual    yes         DampedStep' in printed
    assert [b.stage for b in names['by_name']] == [1] * 6
    assert [b.stage for b in names['by_shape']] == [1, 1, 1, 2, 2, 2]
    assert [*folder.glob('drawn/**/largest_block_1.png')]


@pytest.mark.core
def test_it_is_the_step_of_a_backbone(page):
    names, printed, folder = page
    config = Config.fromfile(folder / 'my_config.py')
    assert config.model.backbone.step.type == 'DampedStep'
    steps = names['net'].steps()
    assert len(steps) == 16 and {*map(type, steps)} == {names['DampedStep']}
    assert 'steps: 1,920 parameters' in printed
    assert '8 DampedStep' in printed
    assert 'latency: median' in printed
