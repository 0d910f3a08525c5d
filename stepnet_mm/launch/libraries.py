"""Checks that the libraries import, know the package, and train with it.

This module itself imports none of them: any may be absent or broken.
"""
import contextlib
import importlib
import importlib.util
import io
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .report import Report, one_line
from .versions import LIBRARIES

#: In s, for one import: a cold disk or a network's takes long.
LIMIT = 120.
#: Imports modules in turn and names each beforehand; the libraries' own words
#: do not get between. The alarm ends what no exception does.
TRIES = '''
import contextlib, importlib, os, signal, sys
names = os.dup(1)
os.dup2(2, 1)
for name in sys.argv[2:]:
    os.write(names, f"{name}\\n".encode())
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    with contextlib.suppress(BaseException):
        importlib.import_module(name)
os.write(names, b"all\\n")
os._exit(0)
'''
#: Module -> what its import does to a process, where that is no exception.
_FATAL: dict[str, str] = {}


def check_imports(report: Report) -> None:
    """Whether each library imports and mmcv has its operators."""
    names = 'torch', *LIBRARIES, 'stepnet_mm'
    _keep_out_fatal([name for name in (*names, 'mmcv.ops')
                     if name not in sys.modules])
    for name in names:
        error = _is_installed(name) and import_error(name)
        if error:
            report.error(f'{name} does not import ({error})',
                         'reinstall it; versions as in README, "Which stack"')
    if _is_installed('mmcv'):
        _check_operators(report)


def check_registries(report: Report) -> list[str]:
    """Whether each library's scope has what the package registers.

    Returns:
        list[str]: the libraries that have StepResNet.
    """
    for name in ('AtomicCheckpointHook', 'PreemptionHook', 'TNSHook'):
        _check_registered(report, 'mmengine', 'HOOKS', name)
    found = [library for library in ('mmdet', 'mmpretrain')
             if _is_installed(library)
             and _check_registered(report, library, 'MODELS', 'StepResNet')]
    for library in found:
        report.ok(f'scope {library}: StepResNet, StepAdaptor, hooks')
    return found


def check_training(report: Report, library: str) -> None:
    """Whether a tiny StepNet trains, is saved, loaded and resumed."""
    try:
        with _unprinted(), tempfile.TemporaryDirectory() as folder:
            trial = importlib.import_module('stepnet_mm.launch.trial')
            trial.try_training(library, folder)
        report.ok(f'{library}: a tiny StepResNet trains, is saved, loaded and '
                  'resumed bit for bit')
    except Exception as error:
        report.error(
            f'{library}: no training of a tiny StepResNet '
            f'({one_line(error)})',
            'README, "Which stack", has environments that work; please '
            'report this one, with these lines, as an issue')


def import_error(name: str) -> str:
    """Why a module does not import; '' if it does."""
    if name in _FATAL:
        return _FATAL[name]
    try:
        with _unprinted():
            importlib.import_module(name)
        return ''
    except BaseException as error:  # a library may even exit
        return one_line(error)


def fatal_imports(names: Sequence[str]) -> dict[str, str]:
    """The modules whose import ends a process, or does not end.

    Args:
        names (sequence[str]): what is imported, in processes of its own.

    Returns:
        dict[str, str]: module -> what came of it. What raises is not in it.
    """
    found = {}
    while names:
        tried = subprocess.run(
            [sys.executable, '-c', TRIES, str(LIMIT), *names],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        begun = tried.stdout.split()
        if not begun or begun[-1] == 'all':
            break
        found[begun[-1]] = _end_of(tried.returncode)
        names = names[len(begun):]
    return found


def _end_of(code: int) -> str:
    if code == -getattr(signal, 'SIGALRM', 0) != 0:
        return f'no end after {LIMIT:g} s'
    how = signal.Signals(-code).name if code < 0 else f'exit code {code}'
    return f'it ends the process: {how}'


def _keep_out_fatal(names: Sequence[str]) -> None:
    """Have what would end or hold this process raise an ImportError here."""
    _FATAL.update(fatal_imports(names))
    sys.modules.update(dict.fromkeys(_FATAL))  # type: ignore[arg-type]


def _unprinted() -> contextlib.AbstractContextManager:
    """For libraries that print."""
    return contextlib.redirect_stdout(io.StringIO())


def _is_installed(name: str) -> bool:
    return name in _FATAL or importlib.util.find_spec(name) is not None


def _check_operators(report: Report) -> None:
    error = import_error('mmcv.ops')
    if error:
        report.error(
            f'mmcv has no compiled operators ({error})',
            'detectors need them: bash tools/setup_env.sh compiles them; '
            'classification does without')
        return
    ops = importlib.import_module('mmcv.ops')
    torch = importlib.import_module('torch')
    if (torch.cuda.is_available()
            and ops.get_compiling_cuda_version() == 'not available'):
        report.error('mmcv.ops: compiled for the CPU only, on a machine with '
                     'GPUs', 'compile mmcv there: bash tools/setup_env.sh')
    else:
        report.ok('mmcv.ops: compiled operators')


def _check_registered(report: Report, library: str, kind: str,
                      name: str) -> bool:
    """Whether a registry of a library finds our class."""
    try:
        registries = importlib.import_module(f'{library}.registry')
        found = getattr(registries, kind).get(name)
        if found is not None and found.__module__.startswith('stepnet_mm'):
            return True
        why = f'got {found}'
    except Exception as error:
        why = one_line(error)
    report.error(f'scope {library}: no {name} of stepnet_mm ({why})',
                 f'try: python -c "import stepnet_mm, {library}.registry"')
    return False
