"""Trains and measures the runs of a study, several at a time."""
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from ..utils.file_lock import LockTaken, file_lock
from .outcome import ablation_is_left, best_to_test, record_of
from .progress import (
    add_times,
    failure_of,
    is_trained,
    lock_of,
    missing_result,
    tool_at,
    write_failure,
    wrong_metric,
)
from .records import append_record, check_records, read_records
from .run import StudyRun
from .slots import environment_of
from .training_log import epochs_of, has_diverged, last_checkpoint

#: What ends a process from outside, without its fault: the code after
#: tools/train.py saved at a signal, and the signals that may come unsaved.
FROM_OUTSIDE = (75, *(-number for number in (
    signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)))
#: What no other run would get past either.
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
#: In bytes: with less, a failed run that names a full disk is believed.
ROOM = 1 << 30
#: How many of its last lines are kept of a run that failed.
LAST_LINES = 15
#: In s, between two looks at whether to stop.
PAUSE = .1


class RunFailed(Exception):
    """A tool ended with an error; its last lines."""


class RunStopped(Exception):
    """A tool was ended from outside; how."""


class StudyHalted(Exception):
    """What no run of the study can go on with."""


@dataclass
class StudyRunner:
    """Takes the runs of a study one after the other, ``jobs`` at a time.

    A run is trained by tools/train.py, goes on from where it was, is measured
    by tools/analysis/measure_stiffness.py, and its record is added to the
    file. A run that is done, or that somebody else has, is left alone; a run
    that fails does not stop the others, unless none could go on: on a full
    disk, or where the study's metric is not evaluated. A process that is
    killed from outside is started once more; after that its run waits for the
    next call.

    Attributes:
        tools (Path): the folder of the tools.
        records (Path): the file of the records.
        data_root (str | None): of all datasets, in place of the configs'.
        jobs (int): how many runs at a time.
        environments (sequence[dict]): environment variables of each slot,
            such as ``CUDA_VISIBLE_DEVICES``; slot i takes the i-th, all over
            again where there are fewer.
        threads (int): of each process.
        retry (bool): whether runs that failed are tried again.
        trained_only (bool): whether to train nothing, and measure and record
            what is trained.
        say (callable): takes a line for the user.
    """
    tools: Path
    records: Path
    data_root: str | None = None
    jobs: int = 1
    environments: Sequence[dict[str, str]] = ({}, )
    threads: int = 1
    retry: bool = False
    trained_only: bool = False
    say: Callable[[str], None] = print
    _stops: int = 0
    _halted: str = ''
    _failed: list[str] = field(default_factory=list)
    #: Process -> how often it was told to stop.
    _children: dict[int, int] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def run(self, runs: Sequence[StudyRun]) -> list[str]:
        """Run all that are left; returns at the end, or after :meth:`stop`.

        Args:
            runs (sequence[StudyRun]): in this order.

        Returns:
            list[str]: the names of those that failed, now or before, or were
            killed.

        Raises:
            ValueError: if a run was begun with another config, or the records
                were made under other settings.
            RuntimeError: if no run can go on.
        """
        check_records(self.records, runs)
        waiting: SimpleQueue[StudyRun] = SimpleQueue()
        for run in runs:
            run.write_config()
            waiting.put(run)
        threads = [
            threading.Thread(target=self._work, args=(waiting, slot))
            for slot in range(self.jobs)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self._pass_on()
            time.sleep(PAUSE)
        if self._halted:
            raise RuntimeError(self._halted)
        return list(dict.fromkeys(self._failed))

    def stop(self) -> None:
        """Have every run save, and end; a second time, end at once.

        May be called by a signal handler.
        """
        self._stops += 1

    @property
    def _ending(self) -> int:
        """How often every run was told to stop, by a halt at least once."""
        return max(self._stops, bool(self._halted))

    def _pass_on(self) -> None:
        """Tell processes that were started since then, too."""
        ending = self._ending
        with self._mutex:
            for process, told in self._children.items():
                if told < ending:
                    self._children[process] = ending
                    _end(process, ending > 1)

    def _work(self, waiting: SimpleQueue, slot: int) -> None:
        with suppress(Empty):
            while not self._ending:
                run = waiting.get_nowait()
                try:
                    self._take(run, slot)
                except Exception as error:  # a result may be anything
                    self._fail(run, error)

    def _fail(self, run: StudyRun, error: Exception) -> None:
        if (isinstance(error, StudyHalted)
                or getattr(error, 'errno', None) in FULL_DISK):
            self._halted = self._halted or (
                f'{run.name}: {error}; the next call goes on')
            return
        self._failed.append(run.name)
        self.say(f'{run.name}: {type(error).__name__}: {error}; the next '
                 'call goes on with it')

    def _take(self, run: StudyRun, slot: int) -> None:
        """One run, if it is free and not done."""
        try:
            with file_lock(lock_of(run)):
                if self._is_left(run):
                    self._finish(run, slot)
        except LockTaken as taken:
            self.say(f'{run.name}: left to {taken}')
        except RunStopped as stopped:
            if not self._ending:
                self._failed.append(run.name)
            self.say(f'{run.name}: stopped ({stopped}); the next call goes '
                     'on with it')
        except RunFailed as failed:
            _halt_if_full(str(failed), run)
            self._failed.append(run.name)
            self.say(f'{run.name}: failed\n{failed}')
            write_failure(run, str(failed))

    def _is_left(self, run: StudyRun) -> bool:
        if any(r.key == run.key for r in read_records(self.records)):
            return False
        if holder := tool_at(run):
            raise LockTaken(holder)  # it outlived a runner that was killed
        if failure_of(run) and not self.retry:
            self._failed.append(run.name)
            self.say(f'{run.name}: failed before; --retry tries it again')
            return False
        if self.trained_only and not is_trained(run):
            return False
        if failure_of(run):
            write_failure(run, '')
        return True

    def _finish(self, run: StudyRun, slot: int) -> None:
        if not is_trained(run):
            self._train(run, slot)
        if not has_diverged(run.folder):
            _check_result(run)
            self._measure(run, slot)
        record = record_of(run)
        append_record(self.records, record)
        self.say(f'{run.name}: ' + ('diverged' if record.last is None else
                                    f'{record.metric} {record.last:.4g}'))

    def _train(self, run: StudyRun, slot: int) -> None:
        self.say(f'{run.name}: training')
        try:
            self._call(run, slot, 'train.py', '--work-dir', run.folder,
                       '--resume')
        except RunFailed:
            if not has_diverged(run.folder):
                raise

    def _measure(self, run: StudyRun, slot: int) -> None:
        self.say(f'{run.name}: measuring')
        for definition in run.study.measure['definitions']:
            self._call(run, slot, 'analysis/measure_stiffness.py',
                       last_checkpoint(run.folder), '--name', run.name,
                       '--num-samples', run.study.measure['num_samples'],
                       '--definition', definition, '--out',
                       run.stiffness_file(definition))
        if ablation_is_left(run):
            self._call(run, slot, 'analysis/ablate_steps.py',
                       last_checkpoint(run.folder), '--work-dir',
                       run.ablation_file.parent, '--out', run.ablation_file)
        if (run.study.measure['robustness']
                and not run.robustness_file.exists()):
            self._call(run, slot, 'analysis/robustness.py',
                       last_checkpoint(run.folder), '--out',
                       run.robustness_file)
        if best := best_to_test(run):
            self._call(run, slot, 'test.py', best, '--work-dir',
                       run.test_folder)

    def _call(self, run: StudyRun, slot: int, tool: str, *arguments) -> None:
        """Run a tool on the run's config to its end."""
        command = [sys.executable, self.tools / tool, run.config_file,
                   *arguments]
        if self.data_root:
            command += ['--data-root', self.data_root]
        for is_last in (False, True):
            if self._ending:
                raise RunStopped('before it started')
            begin = run.log.stat().st_size if run.log.exists() else 0
            code = self._process(run, slot, [str(word) for word in command])
            if not code:
                return
            if self._ending or (is_last and code in FROM_OUTSIDE):
                raise RunStopped(_described(code))
            if code not in FROM_OUTSIDE:
                raise RunFailed(_last_lines(run.log, begin, code))
            self.say(f'{run.name}: {tool} was stopped from outside '
                     f'({_described(code)}); it goes on')

    def _process(self, run: StudyRun, slot: int, command: list[str]) -> int:
        """Run a command; its exit code, -N where signal N ended it."""
        environment = environment_of(
            self.environments[slot % len(self.environments)], self.threads)
        begin = time.monotonic()
        run.folder.mkdir(parents=True, exist_ok=True)
        with open(run.log, 'ab') as log, self._mutex:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment,
                start_new_session=True)  # Ctrl-C is for the study alone
            self._children[process.pid] = 0
        # Its number stays its own until wait4, so no signal goes astray.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._mutex:
            del self._children[process.pid]
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        add_times(run.folder, usage.ru_utime + usage.ru_stime,
                  time.monotonic() - begin)
        return process.returncode


def _end(process: int, at_once: bool) -> None:
    """TERM to a process, or KILL to it and its loader workers."""
    if at_once:
        os.killpg(process, signal.SIGKILL)
    else:
        os.kill(process, signal.SIGTERM)


def _halt_if_full(text: str, run: StudyRun) -> None:
    """Not for shared memory, or a temporary folder, that was too small."""
    for code in FULL_DISK:
        reason = os.strerror(code)
        if reason in text and (code != errno.ENOSPC or shutil.disk_usage(
                run.folder).free < ROOM):
            raise StudyHalted(f'{reason}, {run.log}') from None


def _check_result(run: StudyRun) -> None:
    """Look, before a run is measured, whether its record can be written."""
    epochs = epochs_of(run.folder)
    if wrong := wrong_metric(run, epochs):
        # Another run may have it, so that this one is left alone from now on.
        write_failure(run, wrong)
        raise StudyHalted(f'{wrong}; --retry takes this run again')
    if missing := missing_result(run, epochs):
        raise RunFailed(missing)


def _described(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f'exit code {code}'


def _last_lines(path: Path, begin: int, code: int) -> str:
    """The end of what a process wrote from a place in its log on."""
    with open(path, 'rb') as file:
        file.seek(begin)
        lines = file.read().decode(errors='replace').splitlines()
    return '\n'.join([f'{_described(code)}, {path}', *lines[-LAST_LINES:]])
