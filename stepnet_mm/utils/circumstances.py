"""Where and with what a run was made."""
import importlib.metadata
import platform
import re
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Whose files a run depends on.
FOLDERS = ('stepnet_mm', 'tools', 'configs')
LIBRARIES = ('torch', 'mmengine', 'mmcv', 'mmdet', 'mmpretrain', 'numpy')


def circumstances() -> dict[str, Any]:
    """What a result is given with, though it should not depend on it."""
    import torch
    gpu = torch.cuda.is_available()
    return dict(
        commit=revision(),
        versions=versions(),
        device=torch.cuda.get_device_name() if gpu else 'cpu',
        machine=machine(),
        date=today())


def machine() -> str:
    """What rounds on a CPU: processor, instruction set and threads.

    A name such as AMD EPYC is that of processors of several generations,
    which do not round alike.
    """
    import torch
    return (f'{_processor()}, {torch.backends.cpu.get_cpu_capability()}, '
            f'{torch.get_num_threads()} threads')


def versions() -> dict[str, str]:
    """Of the libraries, by import name, and of Python."""
    owners = importlib.metadata.packages_distributions()
    found = {
        name: importlib.metadata.version(owners[name][0])
        for name in LIBRARIES if name in owners
    }
    return dict(found, python=platform.python_version())


def today() -> str:
    """The date, as results are given with it."""
    return date.today().isoformat()


def revision() -> str:
    """The commit of this package; 'unknown' where it is no checkout.

    It ends in ``-dirty`` where something that a run depends on is not
    committed, files unknown to git included.
    """
    if not (ROOT / '.git').exists():  # installed into somebody's repository
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
    """Name, family and model, as far as Linux tells them."""
    try:
        text = Path('/proc/cpuinfo').read_text()
    except OSError:
        return platform.processor() or platform.machine()
    found = dict(re.findall(r'^(.+?)\s*: (.*)$', text, re.M))
    name = found.get('model name', platform.machine())
    if not {'cpu family', 'model'} <= {*found}:  # not x86
        return name
    return f'{name} (family {found["cpu family"]}, model {found["model"]})'
