"""Where and with what a run was made."""
import importlib.metadata
import platform
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

LIBRARIES = ('torch', 'mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'numpy')


def circumstances(root: Path, threads: int) -> dict[str, Any]:
    """The fields of a :class:`.StudyRecord` that no result depends on.

    Args:
        root (Path): the repository.
        threads (int): of a process.
    """
    import torch
    gpu = torch.cuda.is_available()
    return dict(
        commit=_commit(root),
        versions=dict(_versions(), python=platform.python_version()),
        device=torch.cuda.get_device_name() if gpu else 'cpu',
        machine=f'{_processor()}, {threads} threads',
        date=date.today().isoformat())


def _versions() -> dict[str, str]:
    """Of the libraries, by import name."""
    owners = importlib.metadata.packages_distributions()
    return {
        name: importlib.metadata.version(owners[name][0])
        for name in LIBRARIES if name in owners
    }


def _commit(root: Path) -> str:
    try:
        return subprocess.run(
            ['git', 'describe', '--always', '--dirty', '--abbrev=12',
             '--exclude=*'], cwd=root, check=True, capture_output=True,
            text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'


def _processor() -> str:
    try:
        text = Path('/proc/cpuinfo').read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(':')[2].strip() for line in text.splitlines()
             if line.startswith('model name')]
    return names[0] if names else platform.machine()
