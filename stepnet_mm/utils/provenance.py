"""The commit, versions and machine that a result comes from."""
import argparse
import importlib.metadata
import json
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from .files import atomic_write, file_digest

ROOT = Path(__file__).resolve().parents[2]
#: A run depends on the files in these.
FOLDERS = ('stepnet_mm', 'tools', 'configs')
LIBRARIES = ('torch', 'mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'numpy')


def machine() -> str:
    """Processor, instruction set and threads, on which rounding depends.

    A name such as AMD EPYC stands for several generations of processors,
    which do not round alike.
    """
    import torch
    return (f'{_processor()}, {torch.backends.cpu.get_cpu_capability()}, '
            f'{torch.get_num_threads()} threads')


def versions() -> dict[str, str]:
    """Versions of the libraries, by import name, and of Python."""
    found = {name: importlib.metadata.version(names[0])
             for name, names in distributions(LIBRARIES).items() if names}
    return dict(found, python=platform.python_version())


def distributions(libraries: Sequence[str]) -> dict[str, list[str]]:
    """Import name -> the names of its installed distributions."""
    # Python 3.10 reads top_level.txt alone, which numpy does not have.
    owners = importlib.metadata.packages_distributions()
    return {name: [*filter(_is_installed, dict.fromkeys(
        owners.get(name, [name])))] for name in libraries}


def _is_installed(distribution: str | None) -> bool:
    """Not a folder that a removal left: without a name, or renamed."""
    try:
        importlib.metadata.version(distribution or '-')
        return True
    except importlib.metadata.PackageNotFoundError:
        return False


def today() -> str:
    """The date of a result."""
    return date.today().isoformat()


def revision() -> str:
    """The commit of this package; 'unknown' if it is no checkout.

    It ends in ``-dirty`` if :data:`FOLDERS` have uncommitted changes,
    untracked files included.
    """
    if not (ROOT / '.git').exists():  # the .git of a folder above is not ours
        return 'unknown'
    try:
        commit = _git('rev-parse', '--short=12', 'HEAD')
        changed = _git('status', '--porcelain', '--', *FOLDERS)
    except (OSError, subprocess.SubprocessError):
        return 'unknown'
    return f'{commit}-dirty' if changed else commit


def _git(*words: str) -> str:
    return subprocess.run(
        ['git', '--no-optional-locks', *words], cwd=ROOT, check=True,
        capture_output=True, text=True, timeout=10).stdout.strip()


def _processor() -> str:
    """Name, family and model, from /proc/cpuinfo."""
    try:
        text = Path('/proc/cpuinfo').read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = dict(re.findall(r'^(.+?)\s*: (.*)$', text, re.M))
    name = found.get('model name', platform.machine())
    if not {'cpu family', 'model'} <= {*found}:  # not x86
        return name
    return f'{name} (family {found["cpu family"]}, model {found["model"]})'


def measure_into(path: Path, args: argparse.Namespace,
                 measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Write a measurement of a checkpoint, with its origin, as JSON.

    ``args`` has ``config``, ``cfg_options`` and ``checkpoint``; ``measure``
    gives the numbers, None for NaN and infinities. Returns the content.
    """
    content = dict(
        config=args.config, options=args.cfg_options or {},
        checkpoint=args.checkpoint, sha256=file_digest(args.checkpoint),
        date=date.today().isoformat(), **measure())
    with atomic_write(path) as file:
        file.write(json.dumps(content, indent=2, allow_nan=False).encode())
    return content
