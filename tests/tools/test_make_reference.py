"""docs/reference/arguments.md is what the code says, and all of it."""
from pathlib import Path

import pytest
from mmengine.registry import HOOKS, LOOPS, METRICS, MODELS, TRANSFORMS

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


def test_what_is_committed_is_up_to_date(make_reference, monkeypatch):
    run(make_reference, monkeypatch, '--check')


def homes(registry):
    """Names that are registered and not imported yet."""
    return getattr(registry.module_dict, 'homes', ())


def test_every_registered_name_and_tool_is_there():
    registries = [HOOKS, LOOPS, METRICS, MODELS, TRANSFORMS]
    for library in ('mmdet', 'mmpretrain'):
        found = pytest.importorskip(f'{library}.registry')
        registries += [found.MODELS, found.DATASETS]
    for registry in registries:
        registry.get('none')  # has it import what it imports
    names = {name for registry in registries
             for name in [*registry.module_dict, *homes(registry)]
             if registry.get(name).__module__.startswith('stepnet_mm.')}
    tools = [*(ROOT / 'tools').glob('*.py'), *(ROOT / 'tools').glob('*/*.py')]
    names |= {f'{path.relative_to(ROOT)}' for path in tools
              if 'argparse' in path.read_text() or '_parser(' in
              path.read_text()}
    assert len(names) > 60
    assert not [name for name in names if f'# `{name}`\n' not in PAGE]


def test_an_argument_without_a_line_is_an_error(make_reference):
    class Mute(make_reference.StepBackbone):

        def __init__(self, loud=True, **kwargs):
            super().__init__(**kwargs)

    Mute.__module__ = 'stepnet_mm.tests'
    with pytest.raises(ValueError, match='Mute.loud: expected a line'):
        make_reference.class_text(Mute, set())
