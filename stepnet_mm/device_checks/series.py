"""Runs the checks one after another, within a time, whatever they do."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from ..launch.report import Report

#: Module of this folder -> the seconds that it may take.
CHECKS = dict(
    device=60, kernels=60, backbone=90, steps=60, amp=60, ddp=90, resume=90,
    tns_hook=60, detector=90, cost=90, compiled=180)
#: What to do where a check ended without a word.
REPORT_IT = ('please report it as an issue, with the file of --json; '
             'backbone.fused=False does without the fused tail')


def device_name(text: str) -> str:
    """An argument that is ``'cpu'``, ``'cuda'`` or ``'cuda:N'``.

    Raises:
        ArgumentTypeError: if it is none.
    """
    if not re.fullmatch(r'cpu|cuda(:\d+)?', text, re.ASCII):
        raise ArgumentTypeError(
            f'expected cuda, cuda:0, cuda:1, ... or cpu, got {text!r}; '
            'change it')
    return text


def run_checks(report: Report, device: str, seconds: float,
               after_each: Callable[[], object] = bool) -> None:
    """Run all; one that crashes, hangs or raises is an error of its own.

    Args:
        report (Report): gets the rows, each with its ``check``.
        device (str): as :func:`device_name` takes it; of ``'cuda:1'`` the
            checks see that GPU alone.
        seconds (float): for all together; what no time is left for is a
            warning.
        after_each (callable): called when a check is done.
    """
    end = time.monotonic() + seconds
    for name, limit in CHECKS.items():
        left = end - time.monotonic()
        if left < 1:
            report.add('warning', f'{name}: not checked, the {seconds:g} s '
                       'are over: set a higher --seconds', check=name)
        else:
            _run_check(report, name, device, limit, left)
        after_each()
        if name == 'device' and _is_absent(report):
            return


def write_json(path: Path, report: Report, command: list[str],
               finished: bool) -> None:
    """Write all rows and the machine's facts, to be attached to an issue."""
    facts: dict = {}
    for row in report.rows:
        facts.update(row.get('facts', {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(
        dict(command=command, finished=finished, **facts,
             counts=report.counts, rows=report.rows), indent=1) + '\n')


def _is_absent(report: Report) -> bool:
    """Whether there is no such device."""
    return any(row['level'] == 'error' for row in report.rows
               if row.get('check') == 'device')


def _run_check(report: Report, name: str, device: str, limit: float,
               left: float) -> None:
    """Run one, for its own limit or the time that is left for all."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows, log = Path(folder, 'rows'), Path(folder, 'log')
        rows.touch()
        code = _run_process(
            _command(name, device, rows), device, log, min(limit, left))
        for line in rows.read_text().splitlines():
            row = json.loads(line)
            report.add(**dict(row, text=f'{name}: {row["text"]}', check=name,
                              seconds=round(time.monotonic() - start, 1)))
        if code is None and left < limit:  # as a sound machine may end
            report.add('warning', f'{name}: not done in the {left:.0f} s that '
                       'were left: set a higher --seconds', check=name)
        elif code != 0:
            why = f'not done after {limit} s' if code is None else (
                _why(code, log))
            report.add('error', f'{name}: {why}: {REPORT_IT}', check=name,
                       log=_tail(log))


def _command(name: str, device: str, rows: Path) -> list[str]:
    return [sys.executable, '-m', 'stepnet_mm.device_checks.child', name,
            device.partition(':')[0], str(rows)]


def _run_process(command: list[str], device: str, log: Path,
                 limit: float) -> int | None:
    """Run a command, with all that it starts; its code, None if too slow."""
    with log.open('wb') as file:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=file, stderr=file,
            env=_environment(device), start_new_session=True)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill_group(process)


def _kill_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have ended
    process.wait()


def _environment(device: str) -> dict[str, str]:
    # Without it cuBLAS is not deterministic, and torch refuses.
    found = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=':4096:8')
    kind, _, number = device.partition(':')
    if number:
        visible = found.get('CUDA_VISIBLE_DEVICES')
        names = [number] if visible is None else (
            visible.split(',')[int(number):][:1])
        found['CUDA_VISIBLE_DEVICES'] = ','.join(names)
    elif kind == 'cpu':
        found['CUDA_VISIBLE_DEVICES'] = ''
    return found


def _why(code: int, log: Path) -> str:
    if code < 0:
        return f'ended by {signal.Signals(-code).name}'
    return f'ended with code {code} ({(_tail(log) or [""])[-1]})'


def _tail(log: Path) -> list[str]:
    """The last lines that a process printed."""
    return log.read_text(errors='replace').splitlines()[-30:]
