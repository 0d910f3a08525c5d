"""Trains and measures the runs of a study, several at a time."""
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmengine.config import Config

from ..stiffness import read_stiffness_record
from ..utils.file_lock import TRAINING_LOCK, LockTaken, file_lock
from .circumstances import circumstances
from .progress import add_times, failure_of, lock_of, times_of, write_failure
from .records import StudyRecord, append_record, read_records
from .run import StudyRun, config_digest
from .training_log import (
    dataset_of,
    epochs_of,
    has_diverged,
    is_finished,
    last_checkpoint,
    rounded,
)

#: What tools/train.py exits with after it saved at a signal.
PREEMPTED = 75
#: How many of its last lines are kept of a run that failed.
LAST_LINES = 15


class _Failed(Exception):
    """A tool ended with an error; its last lines."""


class _Stopped(Exception):
    """The study is to stop."""


@dataclass
class StudyRunner:
    """Takes the runs of a study one after the other, ``jobs`` at a time.

    A run is trained by tools/train.py, goes on from where it was, is measured
    by tools/analysis/measure_stiffness.py, and its record is added to the
    file. A run that is done, or that another runner holds, is left alone; a
    run that fails does not stop the others.

    Attributes:
        tools (Path): the folder of the tools.
        records (Path): the file of the records.
        data_root (str | None): of all datasets, in place of the configs'.
        jobs (int): how many runs at a time.
        environments (list[dict]): environment variables of each slot, such
            as ``CUDA_VISIBLE_DEVICES``; slot i takes the i-th, all over
            again where there are fewer.
        threads (int): of each process.
        retry (bool): whether runs that failed are tried again.
        say (callable): takes a line for the user.
    """
    tools: Path
    records: Path
    data_root: str | None = None
    jobs: int = 1
    environments: Sequence[dict] = ({}, )
    threads: int = 1
    retry: bool = False
    say: Callable[[str], None] = print
    _stop: threading.Event = field(default_factory=threading.Event)
    _children: dict = field(default_factory=dict)

    def run(self, runs: Sequence[StudyRun]) -> None:
        """Run all that are left; returns at the end, or after :meth:`stop`.

        Args:
            runs (sequence[StudyRun]): in this order.

        Raises:
            ValueError: if a run was begun with another config.
        """
        for run in runs:
            run.write_config()
        waiting = list(runs)[::-1]
        threads = [
            threading.Thread(target=self._work, args=(waiting, slot))
            for slot in range(self.jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # so that a signal is heard
                thread.join(.5)

    def stop(self) -> None:
        """Have every run save, and end."""
        self._stop.set()
        for process in list(self._children.values()):
            _send(process)

    def _work(self, waiting: list, slot: int) -> None:
        while waiting and not self._stop.is_set():
            self._take(waiting.pop(), slot)

    def _take(self, run: StudyRun, slot: int) -> None:
        """One run, if it is free and not done."""
        try:
            with file_lock(lock_of(run)):
                if self._is_left(run):
                    self._finish(run, slot)
        except LockTaken as taken:
            self.say(f'{run.name}: {taken} runs it')
        except _Stopped:
            self.say(f'{run.name}: stopped, it will go on from there')
        except _Failed as failed:
            write_failure(run, str(failed))
            self.say(f'{run.name}: failed\n{failed}')
        except Exception as error:
            self.say(f'{run.name}: {type(error).__name__}: {error}')

    def _is_left(self, run: StudyRun) -> bool:
        if any(r.key == run.key for r in read_records(self.records)):
            return False
        if failure_of(run) and not self.retry:
            self.say(f'{run.name}: failed before; --retry tries it again')
            return False
        write_failure(run, '')
        with file_lock(run.folder / TRAINING_LOCK, note=False):
            return True  # otherwise a killed runner's training goes on

    def _finish(self, run: StudyRun, slot: int) -> None:
        cfg = Config.fromfile(str(run.config_file))
        if not is_finished(run.folder, cfg):
            self.say(f'{run.name}: training')
            try:
                self._call(run, slot, 'train.py', '--work-dir', run.folder,
                           '--resume')
            except _Failed:
                if not has_diverged(run.folder):
                    raise
        if not has_diverged(run.folder):
            self._measure(run, slot)
        record = self._record(run, cfg)
        append_record(self.records, record)
        self.say(f'{run.name}: ' + ('diverged' if record.diverged else
                                    f'{run.study.metric} {record.last:.4g}'))

    def _measure(self, run: StudyRun, slot: int) -> None:
        for definition in run.study.measure['definitions']:
            self._call(run, slot, 'analysis/measure_stiffness.py',
                       last_checkpoint(run.folder), '--name', run.name,
                       '--num-samples', run.study.measure['num_samples'],
                       '--definition', definition, '--out',
                       run.stiffness_file(definition))

    def _call(self, run: StudyRun, slot: int, tool: str, *arguments) -> None:
        """Run a tool on the run's config to its end."""
        command = [sys.executable, self.tools / tool, run.config_file,
                   *arguments]
        if self.data_root:
            command += ['--data-root', self.data_root]
        environment = self.environments[slot % len(self.environments)]
        if self._stop.is_set():
            raise _Stopped
        run.folder.mkdir(parents=True, exist_ok=True)
        start, begin = time.monotonic(), run.log.stat().st_size if (
            run.log.exists()) else 0
        with open(run.log, 'ab') as log:
            process = subprocess.Popen(
                [str(word) for word in command], stdout=log, stderr=log,
                env={**os.environ, 'OMP_NUM_THREADS': str(self.threads),
                     **environment},
                start_new_session=True)  # Ctrl-C is for the study alone
        self._children[slot] = process
        if self._stop.is_set():  # it came while the process started
            _send(process)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        add_times(run.folder, usage.ru_utime + usage.ru_stime,
                  time.monotonic() - start)
        if process.returncode and (self._stop.is_set()
                                   or process.returncode == PREEMPTED):
            raise _Stopped
        if process.returncode:
            raise _Failed(_last_lines(run.log, begin, process.returncode))

    def _record(self, run: StudyRun, cfg: Config) -> StudyRecord:
        epochs = epochs_of(run.folder)
        values = [e[run.study.metric] for e in epochs
                  if run.study.metric in e]
        diverged = has_diverged(run.folder)
        return StudyRecord(
            study=run.study.name,
            method=run.method.name,
            seed=run.seed,
            settings=run.study.settings,
            config=config_digest(cfg),
            dataset=dataset_of(cfg),
            metric=run.study.metric,
            epochs=epochs,
            diverged=diverged,
            last=None if diverged else values[-1],
            best=None if diverged else max(values),
            stiffness={} if diverged else {
                name: _stiffness(run.stiffness_file(name))
                for name in run.study.measure['definitions']
            },
            **circumstances(self.tools.parent, self.threads),
            **times_of(run.folder))


def _send(process: subprocess.Popen) -> None:
    # Not by process.terminate(), which may reap it before wait4 does.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


def _stiffness(path: Path) -> dict:
    """What a record keeps of a measurement."""
    record = read_stiffness_record(path)
    rows = record.summary_by_block()
    return dict(
        **{k: rounded(v) for k, v in record.tns_summary().items()},
        nsi=rounded(record.finite_nsi.mean().item()),
        samples=len(record.nsi),
        lost=record.lost,
        blocks=[
            dict(stage=row['stage'], nsi=rounded(row['mean']),
                 step=rounded(row['step'])) for row in rows
        ])


def _last_lines(path: Path, begin: int, code: int) -> str:
    """The end of what a process wrote from a place in its log on."""
    with open(path, 'rb') as file:
        file.seek(begin)
        lines = file.read().decode(errors='replace').splitlines()
    return '\n'.join([f'exit code {code}, {path}', *lines[-LAST_LINES:]])
