"""What a release brings beside the code, and what it goes with."""
import re
from pathlib import Path

import stepnet_mm
from stepnet_mm import supported

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / '.github'
#: A distribution's name, where it is not the library's.
NAMES = {'onedl-mmdetection': 'mmdet'}


def test_the_changelog_has_this_version_or_is_on_its_way_to_it():
    heads = re.findall(r'^## (\S+)', (ROOT / 'CHANGELOG.md').read_text(), re.M)
    assert heads[0] in ('Unreleased', stepnet_mm.__version__)


def test_nothing_names_the_host_of_a_package_registry():
    texts = [path.read_text() for path in (
        *GITHUB.rglob('*.yml'), *(ROOT / 'requirements').glob('*.txt'),
        *ROOT.glob('tools/*.sh'), ROOT / 'setup.py', ROOT / '.ci' / 'run')]
    assert not [text for text in texts if re.search(
        r'https?://|index-url|find-links', text)]


def pins(stack):
    """Distribution -> the versions that a stack pins, or TORCH= names."""
    stack, _, torch = stack.partition(' TORCH=')
    found = re.findall(r'^([\w-]+)==([\d.]+)',
                       (ROOT / f'requirements/{stack}.txt').read_text(), re.M)
    found += [('torch', torch)] if torch else []
    return {name: {v for n, v in found if n == name} for name, _ in found}


def test_what_was_tried_is_what_is_pinned():
    for stack, (_, versions) in supported.TRIED.items():
        pinned = pins(stack)
        for library, version in versions.items():
            name, = [name for name in pinned if library == NAMES.get(
                name, name.removeprefix('onedl-'))]
            assert version in pinned[name]
