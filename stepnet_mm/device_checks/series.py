"""Runs the checks one after another, within a time, whatever they do."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ..launch.report import Report

#: Module of this folder -> the seconds that it may take.
CHECKS = dict(
    device=60, kernels=60, backbone=90, steps=60, amp=60, ddp=90, resume=90,
    tns_hook=60, detector=90, cost=90, compiled=180)
#: What to do where a check ended without a word.
REPORT_IT = ('please report it as an issue, with the file of --json; '
             'backbone.fused=False does without the fused tail')


def run_checks(report: Report, device: str, seconds: float) -> None:
    """Run all; one that crashes, hangs or raises is an error of its own.

    Args:
        report (Report): gets the rows, each with its ``check``.
        device (str): ``'cuda'`` or ``'cpu'``.
        seconds (float): for all together; what no time is left for is a
            warning.
    """
    end = time.monotonic() + seconds
    for name, limit in CHECKS.items():
        left = end - time.monotonic()
        if left < 1:
            report.add('warning', f'{name}: not checked, the {seconds:g} s '
                       'are over: set a higher --seconds', check=name)
        else:
            _run_check(report, name, device, min(limit, left))
        if name == 'device' and _is_absent(report):
            return


def write_json(path: Path, report: Report, command: list[str]) -> None:
    """Write all rows and the machine's facts, to be attached to an issue."""
    facts: dict = {}
    for row in report.rows:
        facts.update(row.get('facts', {}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(
        dict(command=command, **facts, counts=report.counts,
             rows=report.rows), indent=1) + '\n')


def _is_absent(report: Report) -> bool:
    """Whether there is no such device."""
    return any(row['level'] == 'error' for row in report.rows
               if row.get('check') == 'device')


def _run_check(report: Report, name: str, device: str, limit: float) -> None:
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows, log = Path(folder, 'rows'), Path(folder, 'log')
        rows.touch()
        ended = _run_process(_command(name, device, rows), device, log, limit)
        for line in rows.read_text().splitlines():
            row = json.loads(line)
            report.add(**dict(row, text=f'{name}: {row["text"]}', check=name,
                              seconds=round(time.monotonic() - start, 1)))
        if ended:
            report.add('error', f'{name}: {ended}: {REPORT_IT}', check=name,
                       log=_tail(log))


def _command(name: str, device: str, rows: Path) -> list[str]:
    return [sys.executable, '-m', 'stepnet_mm.device_checks.child', name,
            device, str(rows)]


def _run_process(command: list[str], device: str, log: Path,
                 limit: float) -> str:
    """Run a command, with all that it starts; why it failed, or ''."""
    with log.open('wb') as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=_environment(device),
            start_new_session=True)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return f'not done after {limit:.0f} s'
        finally:
            _kill_group(process)
    return _why(code, log) if code else ''


def _kill_group(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all have ended
    process.wait()


def _environment(device: str) -> dict[str, str]:
    chosen = {'CUDA_VISIBLE_DEVICES': ''} if device == 'cpu' else {}
    # Without it cuBLAS is not deterministic, and torch refuses.
    return dict(os.environ, CUBLAS_WORKSPACE_CONFIG=':4096:8', **chosen)


def _why(code: int, log: Path) -> str:
    if code < 0:
        return f'ended by {signal.Signals(-code).name}'
    return f'ended with code {code} ({(_tail(log) or [""])[-1]})'


def _tail(log: Path) -> list[str]:
    """The last lines that a process printed."""
    return log.read_text(errors='replace').splitlines()[-30:]
