#!/usr/bin/env python
"""Do the tests notice when the code is wrong?

python tests/faults.py [--only NAME ...] [--markdown docs/faults.md]

Writes the deliberate faults of faults.yml into a copy of the checkout, one at
a time, and runs the tests on each until one fails: first those of the module
that is wrong, then the rest of the short run, then the long ones. What was
found out is kept at once, so it can be stopped (Ctrl-C) and goes on. Ends
with a table, and with exit code 1 if a fault was not found: then a test is
missing.
"""
import argparse
import contextlib
import datetime
import hashlib
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
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_suffix('.yml')
SHORT = 'not long and not soak'
LONG = 'long and not soak'
#: Where a fault may be found, in the order in which it is looked for.
STAGES = ('own tests', 'short run', 'long tests')
#: Libraries whose versions the page names, where they are installed.
STACK = ('torch', 'onedl-mmengine', 'mmengine', 'onedl-mmcv', 'mmcv',
         'onedl-mmdetection', 'mmdet', 'onedl-mmpretrain', 'mmpretrain')


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

    @property
    def digest(self) -> str:
        """Tells it from another one of this name."""
        return digest_of(json.dumps(self).encode())

    def write(self, root: Path) -> str:
        """Put it into a copy of the checkout.

        Returns:
            str: the file's new content.

        Raises:
            CannotExamine: if the text is not there once and only once.
        """
        path = Path(root) / self.file
        before = path.read_text() if path.is_file() else ''
        if before.count(self.text) != 1:
            raise CannotExamine(
                f'{self.name}: expected its text once in {self.file}, got it '
                f'{before.count(self.text)} times; adapt {LIST.name}')
        after = before.replace(self.text, self.replacement)
        path.write_text(after)
        return after


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


def stages_of(fault: Fault, own_only: bool = False) -> dict:
    """Stage -> the arguments with which pytest runs its tests."""
    stages = zip(STAGES, (
        # A few files: the start of workers costs more than they save.
        ['-m', SHORT, '-n0', *fault.tests],
        ['-m', SHORT, *[f'--deselect={path}' for path in fault.tests]],
        ['-m', LONG]))
    return dict([*stages][:1 if own_only else None])


def examine(fault: Fault, stages: dict, run) -> dict:
    """Look for a fault, stage by stage.

    Args:
        fault (Fault): the fault.
        stages (dict): as :func:`stages_of` gives them.
        run (callable): takes the fault, or None, and pytest's arguments; runs
            the tests with it and returns the first that fails, or ''.

    Returns:
        dict: ``found_by``, the stage, and ``test``, which failed, both ''
        where none did; ``tried``, the stages; ``seconds``.

    Raises:
        CannotExamine: if that test fails without the fault too.
    """
    start, found_by, test = time.monotonic(), '', ''
    for stage, arguments in stages.items():
        test = run(fault, arguments)
        if test:
            found_by = stage
            break
    # A module's own tests ran without the fault before.
    if found_by not in ('', STAGES[0]) and run(
            None, [*stages[found_by][:2], '-n0', test]):
        raise CannotExamine(f'{test} fails without a fault too')
    return dict(found_by=found_by, test=test, tried=[*stages],
                seconds=round(time.monotonic() - start))


class Record:
    """What was found out so far, a JSON Lines file that is always whole.

    Args:
        path (Path): the file.
        tree (str): digest of the code that is examined.
        commit (str): how git calls it.
    """

    def __init__(self, path: Path, tree: str, commit: str):
        self.path, self.tree, self.commit = Path(path), tree, commit
        lines = self.path.read_text().splitlines() if (
            self.path.exists()) else []
        self.rows = [json.loads(line) for line in lines]

    def add(self, **row) -> dict:
        """Keep a row, at once."""
        row.update(tree=self.tree, commit=self.commit)
        self.rows.append(row)
        self._write()
        return row

    def forget(self, faults: list) -> None:
        """Begin anew with some faults, and with the code as it is."""
        names = {fault.name for fault in faults}
        self.rows = [row for row in self.rows
                     if 'fault' in row and row['fault'] not in names]
        self._write()

    def find(self, fault: Fault, stages: dict):
        """The row of a fault, if it still says something; else None.

        A fault that was found stays found when the code changes, as long as
        its own text does not; one that was not is looked for again.
        """
        for row in self.rows[::-1]:
            if row.get('fault') == fault.name and (
                    row['digest'] == fault.digest) and (
                        row['test'] or row['tree'] == self.tree
                        and set(stages) <= set(row['tried'])):
                return row
        return None

    def passed(self) -> set:
        """Tests that are known to pass without a fault."""
        return {path for row in self.rows if row['tree'] == self.tree
                for path in row.get('passed', ())}

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f'{self.path.name}.unfinished')
        beside.write_text(''.join(f'{json.dumps(r)}\n' for r in self.rows))
        os.replace(beside, self.path)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def git(*arguments) -> str:
    return subprocess.run(['git', *arguments], cwd=ROOT, check=True, text=True,
                          capture_output=True).stdout


def tracked_files() -> list:
    """Paths of the checkout, those that are deleted left out."""
    names = git('ls-files', '-z').split('\0')
    return sorted(name for name in names if (ROOT / name).is_file())


def tree_digest() -> str:
    """Of what the result of a fault depends on."""
    whole = hashlib.sha256()
    for name in tracked_files():
        if not name.startswith(('docs/', 'tests/faults.')):
            whole.update(f'{name}\0'.encode() + (ROOT / name).read_bytes())
    return whole.hexdigest()[:12]


@contextlib.contextmanager
def copy_of_checkout():
    """A folder with the tracked files as they are now; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix='stepnet_mm_fault_') as folder:
        # The test of the list itself would find every fault.
        for name in set(tracked_files()) - {'tests/test_faults.py'}:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path)
        yield Path(folder)


class Pytest:
    """Runs tests in a fresh copy of the checkout, with or without a fault.

    Args:
        workers (int): processes of pytest-xdist.
        limit (float): seconds after which a run is ended.
    """

    def __init__(self, workers: int, limit: float):
        self.limit = limit
        self.options = [
            '-x', '-q', '-rfE', '--color=no', '-p', 'no:cacheprovider', '-n',
            str(workers), '--dist', 'loadgroup']

    def __call__(self, fault, arguments: list) -> str:
        """The first test that fails, '' where all pass.

        Raises:
            CannotExamine: if pytest could not run them.
        """
        with copy_of_checkout() as copy:
            if fault is not None:
                fault.write(copy)
            code, output = self._run(
                copy, ['-m', 'pytest', *self.options, *arguments])
        if code is not None:
            return failed_test(code, output)
        if fault is None:
            raise CannotExamine(f'{arguments} took longer than --limit')
        # A run that hangs shows nobody what is wrong: a test is missing.
        return ''

    def check_import(self) -> None:
        """The tests, and what they start, must see the copy's package."""
        with copy_of_checkout() as copy:
            where = ('import importlib.util as u; '
                     'print(u.find_spec("stepnet_mm").origin)')
            _, output = self._run(copy, ['-c', where], copy.parent)
            if Path(output.strip()).parent != copy / 'stepnet_mm':
                raise CannotExamine('expected stepnet_mm of the copy, got '
                                    f'{output.strip()}')

    def _run(self, copy: Path, arguments: list, folder=None) -> tuple:
        # What tests start must not see an editable install either.
        environment = dict(os.environ, PYTHONPATH=str(copy))
        environment.setdefault('OMP_NUM_THREADS', '1')
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=folder or copy, text=True,
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        try:
            output, _ = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            return None, ''
        finally:
            end(process)
        return process.returncode, output


def end(process: subprocess.Popen) -> None:
    """End pytest, where it still runs, and what it left behind."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if process.poll() is None:  # let fixtures stop what they started
            os.killpg(process.pid, signal.SIGINT)
            process.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def failed_test(code: int, output: str) -> str:
    """The first test that pytest's summary names, '' if all passed.

    Args:
        code (int): pytest's exit code; with ``-x`` pytest-xdist ends with 2
            where pytest ends with 1.
        output (str): what it printed with ``-rfE``.

    Raises:
        CannotExamine: if it ended otherwise, or ran no test.
    """
    if code == 0:
        return ''
    found = re.search(
        r'^(?:FAILED|ERROR) (\S+?\[.*?\](?:@\S+)?|.+?)(?: - .*)?$', output,
        re.M)
    if code not in (1, 2) or found is None:
        raise CannotExamine(f'pytest ended with exit code {code}:\n'
                            f'{output[-2000:]}')
    # pytest-xdist adds the group: test_a[1]@gpu.
    return re.sub(r'@[^\]@]*$', '', found.group(1))


def check_without_faults(faults: list, record: Record, run) -> None:
    """A fault that a broken test finds is worth nothing.

    Raises:
        CannotExamine: if one of their own tests fails without a fault.
    """
    tests = sorted({path for fault in faults for path in fault.tests}
                   - record.passed())
    if not tests:
        return
    print(f'without a fault: {len(tests)} files of tests', flush=True)
    start = time.monotonic()
    failed = run(None, ['-m', SHORT, *tests])
    if failed:
        raise CannotExamine(f'{failed} fails without a fault')
    record.add(passed=tests, seconds=round(time.monotonic() - start))


def examine_all(faults: list, record: Record, run, own_only=False) -> list:
    """The row of every fault; those that are known are not run again."""
    stages = {fault.name: stages_of(fault, own_only) for fault in faults}
    rows = {f.name: record.find(f, stages[f.name]) for f in faults}
    other = {row['commit'] for row in rows.values()
             if row and row['tree'] != record.tree}
    if other:
        print(f'some were found in other code ({", ".join(sorted(other))}); '
              '--again runs them anew')
    left = [fault for fault in faults if rows[fault.name] is None]
    check_without_faults(left, record, run)
    for fault in left:
        result = examine(fault, stages[fault.name], run)
        rows[fault.name] = record.add(
            fault=fault.name, digest=fault.digest, **result)
        print(f'{fault.name}: {verdict(rows[fault.name])}', flush=True)
    return [rows[fault.name] for fault in faults]


def verdict(row: dict) -> str:
    if not row['test']:
        return f'NOT FOUND by {", ".join(row["tried"])} ({row["seconds"]} s)'
    return f'{row["found_by"]} ({row["seconds"]} s): {row["test"]}'


def counts(rows: list) -> list:
    """How many were found up to each stage."""
    by = [STAGES.index(row['found_by']) for row in rows if row['test']]
    return [sum(i <= stage for i in by) for stage in range(len(STAGES))]


def print_table(faults: list, rows: list) -> None:
    print()
    for fault, row in zip(faults, rows):
        print(f'{fault.name}\n    {fault.what}\n    {verdict(row)}')
    own, short, every = counts(rows)
    print(f'\n{len(rows)} faults: {own} found by own tests, {short} by the '
          f'short run, {every} in all')


def markdown(faults: list, rows: list, seconds: int, command: str) -> str:
    """The page of the docs."""
    own, short, every = counts(rows)
    listed = len(read_faults())
    commits = ', '.join(sorted({row['commit'] for row in rows}))
    table = [f'| {fault.name} | `{fault.file}` | {fault.what} | '
             f'{row["found_by"] or "**not found**"} | '
             f'{shown(row["test"])} | {row["seconds"]} |'
             for fault, row in zip(faults, rows)]
    return '\n'.join([
        '# Do the tests notice when the code is wrong?', '',
        f'`python tests/faults.py` writes {listed} deliberate faults '
        '(`tests/faults.yml`)', 'into a copy of the checkout, one at a time, '
        "and runs the tests on each: the wrong", "module's own first, then "
        'the rest of the short run, then the long ones.', '',
        f'- {len(rows)} of the {listed} were written, **{every}** of them '
        f'found: {own} by the own tests of', '  the module that is wrong, '
        f'{short} by the short run.',
        f'- `{command}`, {datetime.date.today()}, commit {commits}, '
        f'{seconds // 60} min in all.', f'- {machine()}; {stack()}.', '',
        '| fault | file | what is wrong | found by | first test that fails '
        '| s |', '|---|---|---|---|---|---|', *table, ''])


def shown(test: str) -> str:
    """A test's id, which may hold what ends a cell."""
    return f'`{test}`'.replace('|', r'\|') if test else ''


def machine() -> str:
    import torch
    gpu = torch.cuda.get_device_name() if (
        torch.cuda.is_available()) else 'no GPU'
    return f'{len(os.sched_getaffinity(0))} CPU cores, {gpu}'


def stack() -> str:
    found = [f'Python {".".join(map(str, sys.version_info[:3]))}']
    for name in STACK:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f'{name} {metadata.version(name)}')
    return ', '.join(found)


def parse_args(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', nargs='+', default=[], metavar='NAME',
                        help='these faults only')
    parser.add_argument('--own-only', action='store_true',
                        help="run the wrong module's own tests only")
    parser.add_argument('--again', action='store_true',
                        help='forget what an earlier call found out')
    parser.add_argument('--record', type=Path,
                        default=ROOT / 'work_dirs/faults.jsonl',
                        help='what was found out; a second call goes on')
    parser.add_argument('--markdown', type=Path, help='write the table there')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument(
        '--limit', type=float, default=1800,
        help='seconds for each run of pytest; one that takes longer finds '
        'nothing')
    return parser.parse_args(arguments)


def main() -> int:
    args = parse_args()
    faults = read_faults(args.only)
    record = Record(args.record, tree_digest(),
                    git('describe', '--always', '--dirty').strip())
    if args.again:
        record.forget(faults)
    run = Pytest(args.workers, args.limit)
    run.check_import()
    rows = examine_all(faults, record, run, args.own_only)
    print_table(faults, rows)
    if args.markdown:
        seconds = sum(row['seconds'] for row in [
            *rows, *[row for row in record.rows if 'passed' in row]])
        command = shlex.join(['python', 'tests/faults.py', *sys.argv[1:]])
        args.markdown.write_text(markdown(faults, rows, seconds, command))
    return int(not all(row['test'] for row in rows))


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except CannotExamine as error:
        print(f'faults: error: {error}', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print('stopped; the same command goes on', file=sys.stderr)
        sys.exit(130)
