"""supported.py and requirements/ name equal versions."""
import re
from pathlib import Path

from stepnet_mm import supported

ROOT = Path(__file__).resolve().parents[1]
#: A distribution's name, where it is not the library's.
NAMES = {'onedl-mmdetection': 'mmdet'}


def pins(stack):
    """Distribution -> the versions that a stack pins, or TORCH= names."""
    stack, _, torch = stack.partition(' TORCH=')
    found = re.findall(r'^([\w-]+)==([\d.]+)',
                       (ROOT / f'requirements/{stack}.txt').read_text(), re.M)
    found += [('torch', torch)] if torch else []
    return {name: {v for n, v in found if n == name} for name, _ in found}


def numbers(version):
    return [int(part) for part in version.split('.')]


def test_what_was_tried_is_what_is_pinned():
    for stack, (_, versions) in supported.TRIED.items():
        pinned = pins(stack)
        for library, version in versions.items():
            name, = [name for name in pinned if library == NAMES.get(
                name, name.removeprefix('onedl-'))]
            assert version in pinned[name]


def test_what_was_tried_is_in_the_range():
    least, limit = map(numbers, supported.PYTHON)
    for pythons, versions in supported.TRIED.values():
        assert all(least <= numbers(python) < limit for python in pythons)
        for library, lowest in supported.LEAST.items():
            assert numbers(versions[library]) >= numbers(lowest)
