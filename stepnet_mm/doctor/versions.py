"""Checks the installed versions, and that the libraries import."""
import importlib
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec

from ..supported import LEAST, PYTHON, differences
from ..utils.provenance import distributions
from .report import row

REQUIRED = ('torch', 'numpy', 'mmengine', 'mmcv')
OPTIONAL = ('mmdet', 'mmpretrain', 'torchvision', 'pycocotools')


def check() -> Iterator[dict]:
    """Whether the libraries are there, recent enough, and go together."""
    python, (least, limit) = platform.python_version(), PYTHON
    if numbers(least) <= numbers(python) < numbers(limit):
        yield row('ok', f'Python {python}')
    else:
        yield row('warning', f'Python {python}: install {least} or later, '
                  f'before {limit}')
    versions = {}
    for name, found in distributions(REQUIRED + OPTIONAL).items():
        if found:
            versions[name] = metadata.version(found[0]) or 'without a version'
        yield from _check_one(name, found, versions.get(name, ''))
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
                  'nothing to do, if a StepResNet trains here (below)')
    else:
        yield row('ok', f'an environment that was tried: STACK={nearest}')


def _check_one(name: str, found: list[str], version: str) -> Iterator[dict]:
    """The rows of a library and its distributions."""
    if not found:
        yield row('warning' if name in OPTIONAL else 'error',
                  f'{name} is not installed: bash tools/setup_env.sh installs '
                  'a tested stack')
        return
    if len(found) > 1:
        yield row('error', f'{name} is installed from {" and ".join(found)}: '
                  f'pip uninstall {" ".join(found)}, then install one of them')
    needed = LEAST.get(name, '0')
    if numbers(version) < numbers(needed):
        yield row('error', f'{found[0]} {version}: install >= {needed}')
    else:
        yield row('ok', f'{found[0]} {version}')


def present() -> list[str]:
    """torch and the mm libraries that are there."""
    return [name for name in LEAST if find_spec(name)]


def load(name: str) -> Iterator[dict]:
    """No row, if a library imports."""
    importlib.import_module(name)
    yield from ()


def numbers(version: str) -> tuple[int, ...]:
    """'2.11.0+cu130' -> (2, 11, 0)."""
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))
