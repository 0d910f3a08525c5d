#!/usr/bin/env python
"""Do the tests notice when the code is wrong?

python tests/faults.py [--only NAME ...]

Writes each deliberate fault of faults.yml into a copy of the checkout and
runs the tests there that the list names for it. At the end the tests that
failed have to pass without a fault.
Exit code 1 if a fault was not found: then a test is missing.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import yaml

from stepnet_mm.utils.command_line import command_parser

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix('.yml')
#: Of a run, in s. A longer one finds nothing: it shows nobody what is wrong.
LIMIT = 300


class CannotExamine(RuntimeError):
    """The script, the list or the environment is wrong, not the code."""


class Fault(NamedTuple):
    """One mistake: ``text`` of a file becomes ``replacement``."""
    name: str
    file: str
    what: str
    text: str
    replacement: str
    tests: list

    def write(self, root: Path) -> str:
        """Put it into a copy of the checkout; the file's new content."""
        path = root / self.file
        before = path.read_text() if path.is_file() else ''
        if before.count(self.text) != 1:
            raise CannotExamine(
                f'{self.name}: expected its text once in {self.file}, got it '
                f'{before.count(self.text)} times; adapt {LIST.name}')
        after = before.replace(self.text, self.replacement)
        path.write_text(after)
        return after


def read_faults(only=()) -> list:
    """The faults of the list, or those of some names."""
    faults = [Fault(**f) for f in yaml.safe_load(LIST.read_text())]
    if unknown := set(only) - {fault.name for fault in faults}:
        raise CannotExamine(f'--only: no fault {sorted(unknown)} in '
                            f'{LIST.name}')
    return [fault for fault in faults if not only or fault.name in only]


@contextlib.contextmanager
def copy_of_checkout():
    """A folder with the tracked files as they are now; gone afterwards."""
    names = subprocess.run(['git', 'ls-files', '-z'], cwd=ROOT, check=True,
                           text=True, capture_output=True).stdout.split('\0')
    with tempfile.TemporaryDirectory(prefix='stepnet_mm_faults_') as folder:
        checkout = Path(folder, 'checkout')
        # The test of the list itself would find every fault.
        for name in {*names} - {'', 'tests/test_faults.py'}:
            if (ROOT / name).is_file():  # not deleted
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, checkout / name)
        yield checkout


def run_pytest(checkout: Path, tests: list, fault=None) -> str:
    """The first test that fails in a copy, '' if all pass or time is up.

    Raises:
        CannotExamine: if pytest could not run them.
    """
    with tempfile.TemporaryDirectory(dir=checkout.parent) as folder:
        copy = Path(shutil.copytree(checkout, f'{folder}/checkout'))
        if fault is not None:
            fault.write(copy)
        process = subprocess.Popen(
            [sys.executable, '-m', 'pytest', '-x', '-n0', '-m',
             'not long and not soak', *tests],
            # What tests start must not see an editable install either.
            cwd=copy, env={**os.environ, 'PYTHONPATH': str(copy),
                           'OMP_NUM_THREADS': '1'},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return ''
        finally:
            end(process)
        if process.returncode == 0:
            return ''
        cache = copy / '.pytest_cache/v/cache/lastfailed'
        # 1: a test failed; 2: a file did not import.
        if process.returncode not in (1, 2) or not cache.exists():
            raise CannotExamine('pytest ended with exit code '
                                f'{process.returncode}:\n{output[-2000:]}')
        return next(iter(json.loads(cache.read_text())))


def end(process: subprocess.Popen) -> None:
    """End pytest, where it still runs, and what it left behind."""
    if process.poll() is None:  # let fixtures stop what they started
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def look_for(fault: Fault, run) -> str:
    """The test that finds it, '' if none does."""
    start = time.monotonic()
    test = run(fault.tests, fault)
    print(f'{fault.name}: {test or "NOT FOUND"} '
          f'({time.monotonic() - start:.0f} s)', flush=True)
    return test


def examine(faults: list, run, workers: int) -> list:
    """The test that finds each fault; several are looked for at a time.

    Raises:
        CannotExamine: if a test that found a fault fails without it too.
    """
    pool = ThreadPoolExecutor(workers)
    try:
        found = [*pool.map(partial(look_for, run=run), faults)]
    except BaseException:  # Ctrl-C, too, ends the runs of pytest
        pool.shutdown(wait=False, cancel_futures=True)
        for child in psutil.Process().children():
            child.kill()
        raise
    tests = {*found} - {''}
    if tests and (failed := run(sorted(tests))):
        raise CannotExamine(f'{failed} fails without a fault too')
    return found


def main() -> int:
    parser = command_parser(__doc__)
    parser.add_argument('--only', nargs='+', default=[], metavar='NAME',
                        help='these faults only')
    parser.add_argument('--workers', type=int, default=2,
                        help='faults at a time')
    args = parser.parse_args()
    start = time.monotonic()
    with copy_of_checkout() as checkout:
        found = examine(read_faults(args.only),
                        partial(run_pytest, checkout), args.workers)
    print(f'{len(found)} faults, {len(found) - found.count("")} of them '
          f'found; {(time.monotonic() - start) / 60:.0f} min')
    return int(not all(found))


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
