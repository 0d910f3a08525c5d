"""docs/reference/arguments.md is what the code says, and all of it."""
import re
from pathlib import Path

import pytest
from mmengine.registry import HOOKS, LOOPS, METRICS, MODELS, TRANSFORMS

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / 'docs/reference/arguments.md').read_text()


@pytest.fixture
def make_reference(load_tool):
    for library in ('mmdet', 'mmpretrain'):
        pytest.importorskip(library)
    return load_tool('make_reference')


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr('sys.argv', ['make_reference.py', *arguments])
    module.main()


def section(name):
    """What stands below the first heading of that name."""
    return re.split(r'^#', PAGE.partition(f'# `{name}`\n')[2], flags=re.M)[0]


def test_what_is_committed_is_up_to_date(make_reference, monkeypatch):
    run(make_reference, monkeypatch, '--check')


def test_a_change_is_found_and_mended(make_reference, monkeypatch, tmp_path,
                                      capsys):
    page = tmp_path / 'docs/arguments.md'
    monkeypatch.setattr(make_reference, 'ROOT', tmp_path)
    monkeypatch.setattr(make_reference, 'PAGE', page)
    monkeypatch.setattr(make_reference, 'page_text', lambda: 'new')
    with pytest.raises(SystemExit, match='not up to date: docs/arguments.md'):
        run(make_reference, monkeypatch, '--check')
    run(make_reference, monkeypatch)
    assert page.read_text() == 'new'
    assert 'writing docs/arguments.md' in capsys.readouterr().out
    run(make_reference, monkeypatch, '--check')


def test_every_registered_name_is_there():
    registries = [HOOKS, LOOPS, METRICS, MODELS, TRANSFORMS]
    for library in ('mmdet', 'mmpretrain'):
        found = pytest.importorskip(f'{library}.registry')
        registries += [found.MODELS, found.DATASETS]
    for registry in registries:
        registry.get('none')  # has it import what it imports
    names = {name for registry in registries
             for name in [*registry.module_dict, *homes(registry)]
             if registry.get(name).__module__.startswith('stepnet_mm.')}
    assert len(names) > 35
    assert not [name for name in names if not section(name)]


def homes(registry):
    """Names that are registered and not imported yet."""
    return getattr(registry.module_dict, 'homes', ())


def test_every_tool_is_there():
    tools = [*(ROOT / 'tools').glob('*.py'), *(ROOT / 'tools').glob('*/*.py')]
    names = [f'{path.relative_to(ROOT)}' for path in tools
             if 'argparse' in path.read_text() or '_parser(' in
             path.read_text()]
    assert len(names) > 25
    assert not [name for name in names if not section(name)]


def test_no_line_is_empty():
    rows = re.findall(r'^\| (.*) \|$', PAGE, re.M)
    assert len(rows) > 300
    assert not [row for row in rows if not row.rpartition('| ')[2].strip()]


@pytest.mark.parametrize('name, row', [
    ('StepBackbone', '| `fused` | bool | `True` |'),
    ('ECAAttention', '| `kernel_size` | int | `3` |'),
    ('TNSHook', '| `interval` | int | `50` |'),
    ('StepResNet', 'And those of [`StepBackbone`](#stepbackbone), `ResNet`'),
    ('SumStepAdaptor', 'And those of [`StepAdaptor`](#stepadaptor).'),
    ('UnnormalizedStepAdaptor', '| `inputs` | str | `\'both\'` |'),
    ('tools/train.py', '| `--amp` |  | automatic mixed precision |'),
    ('tools/train.py', 'And [the options that change a config]'),
    ('tools/study.py', '| `--per-gpu` | `1` | runs at a time on each GPU |'),
    ('tools/make_mini_coco.py', '| `--seed` | `0` | of the drawing |'),
    ('tools/dist_train.sh', 'NNODES, NODE_RANK'),
])
def test_a_section_has(name, row):
    assert row in section(name)


def test_an_argument_without_a_line_is_an_error(make_reference):
    class Mute(make_reference.StepBackbone):

        def __init__(self, loud=True, **kwargs):
            super().__init__(**kwargs)

    Mute.__module__ = 'stepnet_mm.tests'
    with pytest.raises(ValueError, match='Mute.loud: expected a line'):
        make_reference.class_text(Mute, set())


def test_a_default_is_not_said_twice(make_reference):
    short = make_reference.without_default
    assert short('r. Defaults to 16.', 16) == 'r.'
    assert short('r. Defaults to 1e-5.', .00001) == 'r.'
    assert short("r. Defaults to ``'both'``.", 'both') == 'r.'
    assert short('r. Defaults to 16, as there.', 16).endswith('as there.')
    assert short('r. Defaults to BatchNorm.', None).endswith('BatchNorm.')
