"""docs/extending.md: all its code runs, and does what the page says."""
import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch
from mmengine.registry import HOOKS, MODELS

from stepnet_mm.recording import find_residual_blocks
from stepnet_mm.stiffness import read_stiffness_record

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs/extending.md').read_text()
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', PAGE, re.M | re.S)
MODULES = ('my_step', 'my_config', 'test_my_step', 'my_quantity')


def run_command(line, monkeypatch):
    """As a shell does, but in this process."""
    variable, python, path, *arguments = shlex.split(line)
    assert (variable, python) == ('PYTHONPATH=.', 'python')
    monkeypatch.setattr(sys, 'argv', [path, *arguments])
    runpy.run_path(str(ROOT / path), run_name='__main__')


def run_page(monkeypatch):
    """The names that the blocks leave behind, files imported."""
    names = {}
    for language, source in BLOCKS:
        file = re.match(r'# (\w+)\.py\n', source)
        if language == 'bash':
            run_command(source.strip(), monkeypatch)
        elif file:
            Path(f'{file[1]}.py').write_text(source)
            names.update(vars(importlib.import_module(file[1])))
        else:
            exec(compile(source, 'extending.md', 'exec'), names)
    return names


@pytest.mark.core
def test_the_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        names = run_page(monkeypatch)
    finally:
        MODELS.module_dict.pop('DampedStep')
        HOOKS.module_dict.pop('Alignment', None)
        for name in MODULES:
            sys.modules.pop(name)
    for name, test in names.items():
        if name.startswith('test_'):
            test()
    record = read_stiffness_record(tmp_path / 'my_net.jsonl')
    assert record.nsi.shape == (4, 12)
    assert (record.nsi > 0).all() and (record.step == 1).all()
    values = names['alignment'].values
    assert values.shape == (4, 12) and (values.abs() <= 1).all()
    counted = [block.step is not None
               for block in find_residual_blocks(names['stock'])]
    assert counted == [False] * 3 + [True] * 13
    for found in (names['by_name'], names['by_shape']):
        assert [b.stage for b in found] == [1, 1, 1, 2, 2, 2]
    assert [*tmp_path.glob('drawn/**/largest_block_1.png')]
    steps = names['net'].steps()
    assert len(steps) == 16 and {*map(type, steps)} == {names['DampedStep']}
    printed = capsys.readouterr().out
    for text in ('steps: 1,920 parameters', '8 DampedStep', 'latency of',
                 'Bottleneck  residual    yes         DampedStep'):
        assert text in printed
