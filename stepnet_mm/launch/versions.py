"""Checks what is installed, from its metadata: nothing is imported."""
import re
import sys
from importlib import metadata

from ..supported import LEAST, PYTHON, differences
from .report import Report

#: Import name -> its distributions, the maintained one first.
LIBRARIES = {
    'mmengine': ('onedl-mmengine', 'mmengine'),
    'mmcv': ('onedl-mmcv', 'mmcv', 'mmcv-lite'),
    'mmdet': ('onedl-mmdetection', 'mmdet'),
    'mmpretrain': ('onedl-mmpretrain', 'mmpretrain')
}
#: What a training does without.
OPTIONAL = ('mmdet', 'mmpretrain', 'torchvision', 'pycocotools')
#: Pairs that are known not to go together: what, the condition, what to do.
#: Each condition gets the versions by import name, as tuples of numbers.
CONFLICTS = [
    ('mmengine 0.10.7 alone cannot load its own checkpoints with torch >= 2.6',
     lambda v: v['mmengine'] <= (0, 10, 7) and v['torch'] >= (2, 6),
     "nothing, stepnet_mm's loader does; other tools need onedl-mmengine"),
    ('numpy 2 with mmcv 2.1 or mmdet 3.3',
     lambda v: v['numpy'] >= (2, ) and v['mmcv'] < (2, 2),
     'install numpy < 2, or the onedl stack'),
    ('mmcv 2.2 or later with mmdet 3.3, which refuses it',
     lambda v: v['mmcv'] >= (2, 2) and v['mmdet'] < (3, 4),
     'install mmcv 2.1, or onedl-mmdetection'),
]


def check_python(report: Report) -> None:
    """Whether the libraries go with this Python."""
    least, limit = PYTHON
    version = python_version()
    if numbers(least) <= numbers(version) < numbers(limit):
        report.ok(f'Python {version}')
    else:
        report.warn(f'Python {version}', f'{least} or later, before {limit}, '
                    'is what the libraries and this package go with')


def check_versions(report: Report) -> dict[str, str]:
    """Whether all is there, recent enough, and goes together.

    Returns:
        dict[str, str]: the version of what is installed, by import name.
    """
    versions = {}
    for name in ('torch', 'torchvision', 'numpy', 'pycocotools', *LIBRARIES):
        found = distributions(LIBRARIES.get(name, (name, )))
        if len(found) > 1:
            report.error(
                f'{name} is installed from {" and ".join(found)}, one over '
                'the other', f'pip uninstall {" ".join(found)}, then install '
                'one of them')
        if found:
            distribution, versions[name] = next(iter(found.items()))
            _check_least(report, name, distribution, versions[name])
        else:
            (report.warn if name in OPTIONAL else report.error)(
                f'{name} is not installed', 'bash tools/setup_env.sh installs '
                'a stack that was tried')
    if not {'mmdet', 'mmpretrain'} & set(versions):
        report.error('neither mmdet nor mmpretrain is installed',
                     'install one of them: bash tools/setup_env.sh')
    _check_conflicts(report, versions)
    return versions


def check_tried(report: Report, versions: dict[str, str]) -> None:
    """Whether the package was tried in this environment."""
    different = differences(python_version(), versions)
    nearest = min(different, key=lambda name: len(different[name]))
    if different[nearest]:
        report.warn(
            'not an environment that was tried; nearest is '
            f'STACK={nearest}, but for {", ".join(different[nearest])}',
            'nothing, if a StepResNet trains here (below)')
    else:
        report.ok(f'an environment that was tried: STACK={nearest}')


def python_version() -> str:
    """Such as ``'3.11.7'``."""
    return '.'.join(map(str, sys.version_info[:3]))


def numbers(version: str) -> tuple[int, ...]:
    """'2.11.0+cu130' -> (2, 11, 0)."""
    return tuple(map(int, re.findall(r'\d+', version.partition('+')[0])[:3]))


def distributions(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of those that are installed, by name."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def _check_least(report: Report, name: str, distribution: str,
                 version: str) -> None:
    needed = LEAST.get(name, '0')
    if numbers(version) < numbers(needed):
        report.error(f'{distribution} {version}', f'install >= {needed}')
    else:
        report.ok(f'{distribution} {version}')


def _check_conflicts(report: Report, versions: dict[str, str]) -> None:
    by_name = {name: numbers(version) for name, version in versions.items()}
    for what, applies, todo in CONFLICTS:
        try:
            if applies(by_name):
                report.warn(what, todo)
        except KeyError:
            pass  # one of the two is not there
