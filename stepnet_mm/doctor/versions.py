"""Checks what is installed, from its metadata, and whether it imports."""
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec

from ..supported import LEAST, PYTHON, differences
from .rows import row

#: Import name -> its distributions, the maintained one first.
LIBRARIES = {
    'mmengine': ('onedl-mmengine', 'mmengine'),
    'mmcv': ('onedl-mmcv', 'mmcv', 'mmcv-lite'),
    'mmdet': ('onedl-mmdetection', 'mmdet'),
    'mmpretrain': ('onedl-mmpretrain', 'mmpretrain')
}
#: What a training does without.
OPTIONAL = ('mmdet', 'mmpretrain', 'torchvision', 'pycocotools')


def check() -> Iterator[dict]:
    """Whether all is there, recent enough, goes together and was tried."""
    python, (least, limit) = '.'.join(map(str, sys.version_info[:3])), PYTHON
    if numbers(least) <= numbers(python) < numbers(limit):
        yield row('ok', f'Python {python}')
    else:
        yield row('warning', f'Python {python}: {least} or later, before '
                  f'{limit}, is what the libraries and this package go with')
    versions: dict[str, str] = {}
    for name in ('torch', 'torchvision', 'numpy', 'pycocotools', *LIBRARIES):
        found = distributions(name)
        versions.update((name, version) for version in [*found.values()][:1])
        yield from _check_one(name, found)
    if not {'mmdet', 'mmpretrain'} & {*versions}:
        yield row('error', 'neither mmdet nor mmpretrain is installed: '
                  'install one of them: bash tools/setup_env.sh')
    if numbers(versions.get('numpy', '')) >= (2, ) and (
            numbers(versions.get('mmcv', '3')) < (2, 2)):
        yield row('warning', 'numpy 2 with mmcv 2.1, whose imports then fail '
                  'with an error that names neither: install numpy < 2, or '
                  'the onedl stack')
    tried = differences(python, versions)
    nearest = min(tried, key=lambda name: len(tried[name]))
    if tried[nearest]:
        yield row('warning', 'not an environment that was tried; nearest is '
                  f'STACK={nearest}, but for {", ".join(tried[nearest])}: '
                  'nothing, if a StepResNet trains here (below)')
    else:
        yield row('ok', f'an environment that was tried: STACK={nearest}')


def _check_one(name: str, found: dict[str, str]) -> Iterator[dict]:
    if len(found) > 1:
        yield row('error', f'{name} is installed from {" and ".join(found)}, '
                  f'one over the other: pip uninstall {" ".join(found)}, then '
                  'install one of them')
    needed = LEAST.get(name, '0')
    for distribution, version in [*found.items()][:1]:
        if numbers(version) < numbers(needed):
            yield row('error', f'{distribution} {version}: install >= '
                      f'{needed}')
        else:
            yield row('ok', f'{distribution} {version}')
    if not found:
        yield row('warning' if name in OPTIONAL else 'error',
                  f'{name} is not installed: bash tools/setup_env.sh installs '
                  'a stack that was tried')


def present() -> list[str]:
    """torch, and the libraries that are there."""
    return [name for name in ('torch', *LIBRARIES) if find_spec(name)]


def load(name: str) -> Iterator[dict]:
    """Nothing, if a library imports."""
    importlib.import_module(name)
    yield from ()


def numbers(version: str) -> tuple[int, ...]:
    """'2.11.0+cu130' -> (2, 11, 0)."""
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))


def distributions(library: str) -> dict[str, str]:
    """The versions of a library's distributions that are installed."""
    found = {}
    for name in LIBRARIES.get(library, (library, )):
        with suppress(metadata.PackageNotFoundError):
            # A removal that broke off leaves a folder without a version.
            found[name] = metadata.version(name) or 'without a version'
    return found
