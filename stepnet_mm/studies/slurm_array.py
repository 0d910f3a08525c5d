"""Submits the trainings of a study to Slurm."""
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..utils.files import written_whole
from ..utils.slurm import slurm_command
from .progress import failure_of, holder_of, write_failure
from .run import StudyRun
from .study import digest


class NothingToSubmit(Exception):
    """No run can be submitted; why."""


@dataclass(frozen=True)
class SlurmArray:
    """A job array of trainings, and a job behind it that measures.

    Each task trains one run by tools/slurm_submit.sh, which resumes it when
    it is preempted. When all tasks are over, one job more measures and
    records what was trained.

    Attributes:
        tools (Path): the folder of the tools.
        work_dir (Path): of the study; the arrays' files are in ``slurm``.
        partition (str): where the jobs run.
        jobs (int | None): how many tasks at a time; None for all.
        arguments (sequence[str]): of sbatch, for both jobs.
        data_root (str | None): of all datasets, in place of the configs'.
        retry (bool): whether runs that failed are submitted too.
    """
    tools: Path
    work_dir: Path
    partition: str
    jobs: int | None = None
    arguments: Sequence[str] = ()
    data_root: str | None = None
    retry: bool = False

    def submit(self, runs: Sequence[StudyRun],
               measuring: Sequence[str]) -> str:
        """Submit the runs that nobody has, and nobody has submitted.

        Args:
            runs (sequence[StudyRun]): those without a record.
            measuring (sequence[str]): the command that measures and records
                what is trained.

        Returns:
            str: what was submitted.

        Raises:
            NothingToSubmit: if there is none.
            RuntimeError: if sbatch or squeue fails.
        """
        queued = self._queued()
        reasons = [self._why_not(run, queued) for run in runs]
        runs = [run for run, reason in zip(runs, reasons) if not reason]
        if not runs:
            raise NothingToSubmit('nothing to submit: ' + ', '.join(
                f'{n} {reason}' for reason, n in Counter(reasons).items()))
        path = self._write_lines(runs)
        limit = f'%{self.jobs}' if self.jobs else ''
        array = self._sbatch(
            f'--job-name={path.stem}', f'--array=1-{len(runs)}{limit}',
            f'--output={path.with_suffix("")}_%a.log', '--ntasks=1',
            *self.arguments, str(self.tools / 'slurm_submit.sh'), f'@{path}')
        for run in runs:
            write_failure(run, '')
        after = self._sbatch(
            f'--job-name={path.stem}_measure',
            f'--dependency=afterany:{array}',
            f'--output={path.with_suffix("")}_measure.log', '--ntasks=1',
            *self.arguments, '--wrap', shlex.join(measuring))
        return (f'{len(runs)} runs are array {array}; job {after} measures '
                f'and records them then; their logs: {path.parent}')

    def _why_not(self, run: StudyRun, queued: set[str]) -> str:
        """Why a run is not to be submitted; '' if it is."""
        if str(run.folder.resolve()) in queued:
            return 'in the queue'
        if holder_of(run):
            return 'running'
        if failure_of(run) and not self.retry:
            return 'failed (--retry submits them)'
        return ''

    def _queued(self) -> set[str]:
        """The folders of the runs that wait in Slurm's queue, or run."""
        shown = slurm_command('squeue', '--array', '--noheader',
                              '--format=%j %K')
        tasks = re.findall(r'^(\S+) (\d+)$', shown, re.M)
        lines = {path.stem: path.read_text().splitlines()
                 for path in self._folder.glob('*.txt')}
        return {shlex.split(lines[name][int(task) - 1])[2]
                for name, task in tasks if name in lines}

    def _write_lines(self, runs: Sequence[StudyRun]) -> Path:
        """Line N holds the arguments of task N; the name is the job's."""
        name = digest([str(self._folder), time.time()])
        path = self._folder / f'{runs[0].study.name}_{name}.txt'
        with written_whole(path) as file:
            for run in runs:
                run.write_config()
                file.write(f'{shlex.join(self._arguments(run))}\n'.encode())
        return path

    def _arguments(self, run: StudyRun) -> list[str]:
        words = [str(run.config_file.resolve()), '--work-dir',
                 str(run.folder.resolve())]
        return words + (['--data-root', self.data_root]
                        if self.data_root else [])

    @property
    def _folder(self) -> Path:
        return self.work_dir.resolve() / 'slurm'

    def _sbatch(self, *arguments: str) -> str:
        """The number of the job that is submitted."""
        return slurm_command(
            'sbatch', '--parsable', f'--partition={self.partition}',
            *arguments, PYTHON=sys.executable,
            STEPNET_MM=str(self.tools.parent)).strip().partition(';')[0]
