"""Runs checks, each in a process of its own, whatever they do."""
import atexit
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory

from .rows import REPORT_IT, attempt, row

#: Module and function of the checks of a device -> seconds that each may take.
CHECKS = {f'{__package__}.{key}': limit for key, limit in {
    'machine:device': 60, 'numerics:kernels': 60, 'numerics:backbone': 90,
    'numerics:steps': 60, 'trainings:amp': 60, 'trainings:ddp': 90,
    'trainings:resume': 90, 'trainings:tns_hook': 60, 'trainings:detector': 90,
    'cost:cost': 90, 'cost:compiled': 180}.items()}
#: Load of a processor from which on a check may take longer than its limit.
BUSY = 1.25


def check_device(device: str, seconds: float) -> Iterator[dict]:
    """The rows of all checks; what no time is left for is a warning.

    Args:
        device (str): ``'cpu'``, ``'cuda'``, or ``'cuda:1'``, of which the
            checks see that GPU alone.
        seconds (float): for all together; more than 300 are more for each.
    """
    end = time.monotonic() + seconds
    for key, limit in CHECKS.items():
        levels = set()
        for found in run_check(key, device, limit * max(1, seconds / 300),
                               end - time.monotonic()):
            yield found
            levels.add(found['level'])
        if key.endswith(':device') and 'error' in levels:
            return


def run_check(key: str, argument: str, limit: float = 300,
              left: float = 300) -> Iterator[dict]:
    """The rows of one check; if it crashes or hangs, an error row.

    Args:
        key (str): ``'module:function'``; the function takes the argument and
            yields rows.
        argument (str): a device, or what else is checked.
        limit (float): seconds that it may take.
        left (float): seconds that are left for all.
    """
    name, start = key.rpartition(':')[2], time.monotonic()
    if left < 1:
        yield row('warning', f'{name}: not checked, the time is over: set a '
                  'higher --seconds', check=name)
        return
    with TemporaryDirectory() as folder:
        rows, log = Path(folder, 'rows'), Path(folder, 'log')
        code = _run_process(key, argument, rows, log, min(limit, left))
        for line in rows.read_text().splitlines() if rows.exists() else ():
            yield dict(json.loads(line), check=name,
                       seconds=round(time.monotonic() - start, 1))
        tail = log.read_text(errors='replace').splitlines()[-30:] or ['']
    if code != 0:
        level, why = _judge(code, limit, left, tail[-1])
        yield row(level, f'{name}: {why}', check=name, log=tail)


def _judge(code: int, limit: float, left: float, last: str) -> tuple[str, str]:
    """What the end of a check means. A sound machine may be too slow: one
    that others use, or for the time that is left.
    """
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if code != -signal.SIGALRM:
        how = f'by {signal.Signals(-code).name}' if code < 0 else (
            f'with code {code} ({last})')
        return 'error', f'ended {how}: {REPORT_IT}'
    if left < limit:
        return 'warning', (f'not done in the {left:.0f} s that were left: set '
                           'a higher --seconds')
    if load > BUSY * cores:
        return 'warning', (
            f'not done after {limit:.0f} s on a busy machine (load {load:.1f}'
            f', {cores} processors): try again without other work, or with '
            f'a higher --seconds than {max(300, left):.0f}')
    return 'error', f'not done after {limit:.0f} s: {REPORT_IT}'


def _run_process(key: str, argument: str, rows: Path, log: Path,
                 limit: float) -> int:
    """Run a check, with all that it starts; its exit code."""
    log.touch()
    process = multiprocessing.get_context('spawn').Process(
        target=_run, args=(key, argument, rows, log, limit))
    process.start()
    atexit.register(_kill, process)  # at Ctrl-C multiprocessing waits for it
    process.join()
    code = process.exitcode or 0
    atexit.unregister(_kill)
    _kill(process)
    return code


def _kill(process: BaseProcess) -> None:
    """End a process and all that it started."""
    process.kill()
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()


def _run(key: str, argument: str, rows: Path, log: Path,
         limit: float) -> None:
    """Be such a process; what was found before a crash is kept."""
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, limit)  # ends it, by SIGALRM
    threading.Thread(target=_end_with_the_doctor, daemon=True).start()
    for standard in (1, 2):
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), standard)
    os.environ.update(_variables(argument))
    if argument.startswith('cuda:'):
        argument = 'cuda'
    for found in attempt(key.rpartition(':')[2],
                         lambda: resolve_name(key)(argument)):
        with rows.open('a') as file:
            file.write(json.dumps(found) + '\n')


def _end_with_the_doctor() -> None:
    """Kill this process and all it started when the doctor is gone."""
    doctor = multiprocessing.parent_process()
    if doctor:
        doctor.join()
        os.killpg(0, signal.SIGKILL)


def _variables(device: str) -> dict[str, str]:
    """Of the environment: a device shows its GPU alone, and a CPU none."""
    # Without it cuBLAS is not deterministic, and torch refuses.
    found = dict(CUBLAS_WORKSPACE_CONFIG=':4096:8')
    visible = os.environ.get('CUDA_VISIBLE_DEVICES')
    if device == 'cpu':
        found['CUDA_VISIBLE_DEVICES'] = ''
    elif device.startswith('cuda:'):
        number = device.removeprefix('cuda:')
        names = [number] if visible is None else (
            visible.split(',')[int(number):][:1])
        found['CUDA_VISIBLE_DEVICES'] = ','.join(names)
    return found
