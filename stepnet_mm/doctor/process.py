"""A check in a process of its own, which may crash or hang.

It writes its rows as lines of JSON; what the libraries print goes into a file.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pkgutil import resolve_name
from tempfile import TemporaryFile

from .report import REPORT_IT, attempt, row


def run(name: str, check: str, argument: str, device: str,
        seconds: float) -> Iterator[dict]:
    """The rows of a check, and an error if it crashes or hangs.

    Args:
        name (str): begins the rows.
        check (str): ``'module:function'``, a function that yields rows.
        argument (str): the function's argument.
        device (str): ``'cpu'``, ``'cuda'``, ``'cuda:1'`` (that GPU alone), or
            ``''``, whatever there is.
        seconds (float): after which it ends.
    """
    start = time.monotonic()
    # Files, for a pipe may be held open by a child that outlives the check.
    with TemporaryFile('w+') as rows, TemporaryFile(
            'w+', errors='replace') as log, subprocess.Popen(
                [sys.executable, '-m', __name__, name, check, argument],
                stdin=subprocess.PIPE, stdout=rows, stderr=log,
                start_new_session=True, env=_environment(device)) as process:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        taken = round(time.monotonic() - start, 1)
        rows.seek(0)
        for line in rows:
            yield dict(json.loads(line), check=name, seconds=taken)
        log.seek(0)
        lines = log.read().splitlines()[-30:]
    if code == 0:
        return
    if code is None:
        why = f'not done in {seconds:.0f} s: set a higher --seconds'
    elif code < 0:
        why = f'ended by {signal.Signals(-code).name}: {REPORT_IT}'
    else:
        why = f'ended with code {code} ({"".join(lines[-1:])}): {REPORT_IT}'
    yield row('error', f'{name}: {why}', check=name, log=lines)


def _environment(device: str) -> dict[str, str]:
    """In which a device's GPU is seen alone, on a CPU none."""
    key, number = 'CUDA_VISIBLE_DEVICES', device.partition(':')[2]
    found = dict(os.environ, PYTHONFAULTHANDLER='1',
                 CUBLAS_WORKSPACE_CONFIG=':4096:8')  # for determinism
    if device == 'cpu':
        found[key] = ''
    elif number and key in found:
        found[key] = ''.join(found[key].split(',')[int(number):][:1])
    elif number:
        found[key] = number
    return found


def _main(name: str, check: str, argument: str) -> None:
    threading.Thread(target=_end_with_the_doctor, daemon=True).start()
    with os.fdopen(os.dup(1), 'w', buffering=1) as rows:
        os.dup2(2, 1)
        for found in attempt(name, lambda: resolve_name(check)(argument)):
            print(json.dumps(found), file=rows)


def _end_with_the_doctor() -> None:
    """Kill this process and its children when the doctor is gone."""
    os.read(0, 1)  # not sys.stdin, whose lock forks would wait for
    os.killpg(0, signal.SIGKILL)


if __name__ == '__main__':
    _main(*sys.argv[1:])
