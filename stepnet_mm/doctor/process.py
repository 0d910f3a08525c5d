"""A check in a process beside the doctor, where it may crash or hang.

A check is a function of one text that yields rows. Its process writes them as
lines of JSON; the libraries' output goes into a file. Its time limit is the
caller's (:mod:`.__main__`).
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pkgutil import resolve_name
from tempfile import TemporaryFile

REPORT_IT = ('if the versions go together (docs/install.md), please '
             'report it as an issue, with the file of --json')


def row(level: str, text: str, **values: object) -> dict:
    """A line (ok, skipped, warning or error) and values for the file."""
    return dict(level=level, text=text, **values)


def judge(good: bool, text: str, todo: str, level: str = 'error') -> dict:
    """A row: ok, or the level, with what to do."""
    return row('ok', text) if good else row(level, f'{text}: {todo}')


def attempt(name: str, check: Callable[..., Iterable[dict]],
            *args: object) -> Iterator[dict]:
    """The rows of a check under a name; an exception becomes the last."""
    try:
        for found in check(*args):
            yield dict(found, text=f'{name}: {found["text"]}')
    except Exception as error:
        yield row('error', f'{name}: {one_line(error)}: {REPORT_IT}')


def one_line(error: BaseException) -> str:
    """An exception's type and text; of another process's traceback the end."""
    text = str(error).strip()
    if 'Traceback (most' in text:
        text = text.splitlines()[-1]
    return f'{type(error).__name__}: {text}'.replace('\n', ' ')


def run(check: str, argument: str, device: str, seconds: float,
        left: float) -> list[dict]:
    """The rows of a check, and one more if it does not end well.

    The check is ``'module:function'``, and its rows begin with the function;
    the device ``'cpu'`` hides the GPUs. If it takes more than ``seconds`` it
    is an error, if it is cut when no more are ``left`` a warning.
    """
    environment = dict(os.environ, PYTHONFAULTHANDLER='1',
                       CUBLAS_WORKSPACE_CONFIG=':4096:8')  # for determinism
    if device == 'cpu':
        environment['CUDA_VISIBLE_DEVICES'] = ''
    # Files, for a pipe may be held open by a child that outlives the check.
    with TemporaryFile('w+') as rows, TemporaryFile(
            'w+', errors='replace') as log, subprocess.Popen(
                [sys.executable, '-m', __name__, check, argument],
                stdin=subprocess.PIPE, stdout=rows, stderr=log,
                start_new_session=True, env=environment) as process:
        try:
            code = process.wait(min(seconds, left))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        rows.seek(0)
        found = [*map(json.loads, rows)]
        log.seek(0)
        text = log.read()
    lines = text.splitlines()
    if code is None:
        why = (f'not done in {min(seconds, left):.0f} s: set a higher '
               '--seconds')
    elif code < 0:  # the innermost line of faulthandler's stack
        place = re.findall(r'^Current thread.*\n  (File .*)$', text, re.M)
        why = ' in '.join([f'ended by {signal.Signals(-code).name}', *place])
    elif code:
        why = f'ended with code {code} ({"".join(lines[-1:])})'
    else:
        return found
    todo = f': {REPORT_IT}' if code else ''
    level = 'warning' if code is None and left < seconds else 'error'
    return [*found, row(level, f'{check.rpartition(":")[2]}: {why}{todo}',
                        log=lines[-30:])]


def _main(check: str, argument: str) -> None:
    threading.Thread(target=_end_with_the_doctor, daemon=True).start()
    with os.fdopen(os.dup(1), 'w', buffering=1) as rows:
        os.dup2(2, 1)
        for found in attempt(check.rpartition(':')[2],
                             lambda: resolve_name(check)(argument)):
            print(json.dumps(found), file=rows)


def _end_with_the_doctor() -> None:
    """Kill this process and its children when the doctor is gone."""
    os.read(0, 1)  # not sys.stdin, whose lock forks would wait for
    os.killpg(0, signal.SIGKILL)


if __name__ == '__main__':
    _main(*sys.argv[1:])
