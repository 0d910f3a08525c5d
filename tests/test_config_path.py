"""Another project finds our configs, by names that are unique."""
from collections import Counter
from pathlib import Path

import pytest

from stepnet_mm import config_path

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / 'configs'
FILES = sorted(CONFIGS.rglob('*.py'))


def test_names_are_unique():
    """mim looks for a config's name in the whole package."""
    others = [path for folder in ('stepnet_mm', 'tools')
              for path in (ROOT / folder).rglob('*.py')]
    names = Counter(path.name for path in [*FILES, *others])
    assert not [path for path in FILES if '_base_' not in path.parts
                and names[path.name] > 1]


@pytest.mark.parametrize('suffix', ['.py', ''])
def test_a_config_is_found(suffix):
    for path in FILES[::20]:
        inside = path.relative_to(CONFIGS).with_suffix('').as_posix()
        for name in (path.stem, inside):
            assert config_path(name + suffix) == str(path)


@pytest.mark.parametrize('name, expected', [
    ('faster_rcnn_r50_stepnt', r'faster_rcnn_r50_stepnet\.py'),
    ('nowhere/faster_rcnn_r50_stepnet.py', 'faster_rcnn_r50_stepnet'),
    ('', ''), (None, ''), ('../setup.py', ''), ('qqqqqqqq', 'a file in')])
def test_an_unknown_name_raises_with_those_that_come_close(name, expected):
    with pytest.raises(ValueError, match=f'expected .*{expected}.*{name!r}'):
        config_path(name)
