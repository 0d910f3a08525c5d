#!/usr/bin/env python
"""Do the tests notice when the code is wrong?

python tests/faults.py [--only NAME ...] [--markdown docs/faults.md]

Writes each deliberate fault of faults.yml into a copy of the checkout and
runs tests there until one fails: those of the module that is wrong, for
several faults at a time; where they pass, the rest of the short run; then the
long ones. At the end the tests that failed have to pass without a fault.
Exit code 1 if a fault was not found: then a test is missing.
"""
import argparse
import asyncio
import compileall
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix('.yml')


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
        """Put it into a copy of the checkout.

        Returns:
            str: the file's new content.

        Raises:
            CannotExamine: if the text is not there once and only once.
        """
        path = root / self.file
        before = path.read_text() if path.is_file() else ''
        if before.count(self.text) != 1:
            raise CannotExamine(
                f'{self.name}: expected its text once in {self.file}, got it '
                f'{before.count(self.text)} times; adapt {LIST.name}')
        after = before.replace(self.text, self.replacement)
        path.write_text(after)
        return after


class Stage(NamedTuple):
    """Where a fault may be found: tests by their marker."""
    name: str
    marker: str
    #: Seconds for each run of pytest; one that takes longer finds nothing,
    #: since a run that hangs shows nobody what is wrong.
    limit: int


OWN = Stage('own tests', 'not long and not soak', 300)
SHORT = Stage('short run', OWN.marker, 1800)
#: In the order in which a fault is looked for.
STAGES = (OWN, SHORT, Stage('long tests', 'long and not soak', 3600))


class Result(NamedTuple):
    """Where a fault was found, and the test that failed; '' if none did."""
    stage: str
    test: str
    seconds: float


def read_faults(only=()) -> list:
    """The faults of the list, or those of some names.

    Raises:
        CannotExamine: if there is none of such a name.
    """
    faults = [Fault(**f) for f in yaml.safe_load(LIST.read_text())]
    unknown = set(only) - {fault.name for fault in faults}
    if unknown:
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
        for name in set(names) - {'', 'tests/test_faults.py'}:
            if (ROOT / name).is_file():  # not deleted
                path = checkout / name
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, path)
        compileall.compile_dir(checkout / 'stepnet_mm', quiet=2)
        yield checkout


class Pytest:
    """Runs tests in a copy of the checkout, with or without a fault.

    Args:
        checkout (Path): what is copied for each run.
        workers (int): processes of pytest-xdist, where more than a module's
            own tests run.
    """

    def __init__(self, checkout: Path, workers: int):
        self.checkout, self.workers = checkout, workers

    async def find(self, fault: Fault, stage: Stage) -> str:
        """The first test of a stage that fails with a fault, '' if none."""
        if stage is OWN:
            # The start of workers costs more than they save.
            arguments = ['-n0', *fault.tests]
        else:
            arguments = [f'--deselect={test}' for test in fault.tests]
        return await self.run(['-m', stage.marker, *arguments], stage.limit,
                              fault)

    async def run(self, arguments: list, limit: float, fault=None) -> str:
        """The first test that fails, '' where all pass or time is up.

        Raises:
            CannotExamine: if pytest could not run them.
        """
        with tempfile.TemporaryDirectory(dir=self.checkout.parent) as folder:
            copy = Path(shutil.copytree(self.checkout, f'{folder}/checkout'))
            if fault is not None:
                fault.write(copy)
            process = await asyncio.create_subprocess_exec(
                sys.executable, '-m', 'pytest', '-x', f'-n{self.workers}',
                '--dist=loadgroup', *arguments, cwd=copy,
                # What tests start must not see an editable install either.
                env={**os.environ, 'PYTHONPATH': str(copy),
                     'OMP_NUM_THREADS': '1'},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True)
            try:
                output, _ = await asyncio.wait_for(
                    process.communicate(), limit)
            except asyncio.TimeoutError:
                return ''
            finally:
                await end(process)
            return failed_test(process.returncode, output.decode(), copy)


async def end(process) -> None:
    """End pytest, where it still runs, and what it left behind."""
    if process.returncode is None:  # let fixtures stop what they started
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def failed_test(code: int, output: str, copy: Path) -> str:
    """A test that pytest's cache names as failed, '' if all passed.

    Args:
        code (int): pytest's exit code; with ``-x`` pytest-xdist ends with 2
            where pytest ends with 1.
        output (str): what it printed.
        copy (Path): where it ran.

    Raises:
        CannotExamine: if it ended otherwise, or ran no test.
    """
    if code == 0:
        return ''
    cache = copy / '.pytest_cache/v/cache/lastfailed'
    if code not in (1, 2) or not cache.exists():
        raise CannotExamine(f'pytest ended with exit code {code}:\n'
                            f'{output[-2000:]}')
    # pytest-xdist adds the group: test_a[1]@gpu.
    return re.sub(r'@[^\]@]*$', '', next(iter(json.loads(cache.read_text()))))


async def examine(faults: list, stages: tuple, pytest) -> dict:
    """Look for each fault, stage by stage.

    Args:
        faults (list): the faults.
        stages (tuple): where to look.
        pytest (Pytest): runs the tests.

    Returns:
        dict: a fault's name -> its :class:`Result`.

    Raises:
        CannotExamine: if a test that found a fault fails without it too.
    """
    results = {fault.name: Result('', '', 0) for fault in faults}

    async def look_for(fault, stage, turns):
        async with turns:
            start = time.monotonic()
            test = await pytest.find(fault, stage)
            seconds = results[fault.name].seconds + time.monotonic() - start
        results[fault.name] = Result(test and stage.name, test, seconds)
        print(f'{fault.name}: {test or "NOT FOUND"} ({stage.name}, '
              f'{seconds:.0f} s)', flush=True)

    for stage in stages:
        turns = asyncio.Semaphore(pytest.workers if stage is OWN else 1)
        await asyncio.gather(*(look_for(fault, stage, turns)
                               for fault in faults
                               if not results[fault.name].test))
    tests = {result.test for result in results.values()} - {''}
    failed = tests and await pytest.run(sorted(tests), SHORT.limit)
    if failed:
        raise CannotExamine(f'{failed} fails without a fault too')
    return results


def summary(results: dict) -> str:
    """How many were found, and where."""
    by = [result.stage for result in results.values()]
    own, short = by.count(OWN.name), by.count(SHORT.name)
    return (f'{len(by)} faults, {len(by) - by.count("")} of them found: {own} '
            f'by the own tests of the module that is wrong, {own + short} by '
            'the short run')


def markdown(faults: list, results: dict, seconds: float,
             command: str) -> str:
    """The page of the docs."""
    from stepnet_mm.utils import provenance
    versions = ', '.join(
        f'{name} {version}'
        for name, version in provenance.versions().items())
    table = [f'| {fault.name} | `{fault.file}` | {fault.what} | '
             f'{result.stage or "**not found**"} | {shown(result.test)} | '
             f'{result.seconds:.0f} |'
             for fault in faults for result in [results[fault.name]]]
    return '\n'.join([
        '# Do the tests notice when the code is wrong?', '',
        '`python tests/faults.py` writes each deliberate fault of '
        '`tests/faults.yml` into a copy of', "the checkout and runs tests "
        "there until one fails: the wrong module's own, then the rest",
        'of the short run, then the long ones.', '',
        f'- {summary(results)}.',
        f'- `{command}`, {provenance.today()}, commit '
        f'{provenance.revision()}, {seconds / 60:.0f} min in all.',
        f'- {len(os.sched_getaffinity(0))} cores of '
        f'{provenance.machine()}; {versions}.', '',
        '| fault | file | what is wrong | found by | first test that fails '
        '| s |', '|---|---|---|---|---|---|', *table, ''])


def shown(test: str) -> str:
    """A test's id, which may hold what ends a cell."""
    return f'`{test}`'.replace('|', r'\|') if test else ''


def parse_args(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', nargs='+', default=[], metavar='NAME',
                        help='these faults only')
    parser.add_argument('--own-only', action='store_true',
                        help="run the wrong module's own tests only")
    parser.add_argument('--markdown', type=Path, help='write the table there')
    parser.add_argument('--workers', type=int, default=2,
                        help='faults at a time, and processes of pytest')
    return parser.parse_args(arguments)


def main() -> int:
    args = parse_args()
    start, faults = time.monotonic(), read_faults(args.only)
    with copy_of_checkout() as checkout:
        results = asyncio.run(examine(
            faults, STAGES[:1] if args.own_only else STAGES,
            Pytest(checkout, args.workers)))
    seconds = time.monotonic() - start
    print(f'{summary(results)}; {seconds / 60:.0f} min')
    if args.markdown:
        command = shlex.join(['python', 'tests/faults.py', *sys.argv[1:]])
        args.markdown.write_text(markdown(faults, results, seconds, command))
    return int(not all(result.test for result in results.values()))


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except CannotExamine as error:
        print(f'faults: error: {error}', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
