"""How long a method trains on this machine, without a training of it."""
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from .run import StudyRun
from .runner import LAST_LINES
from .slots import environment_of


def time_method(run: StudyRun, tools: Path, iterations: int,
                data_root: str | None, slot: Mapping[str, str],
                threads: int) -> float:
    """Seconds of a training, by tools/benchmarks/training_time.py.

    Args:
        run (StudyRun): a run of the method.
        tools (Path): the folder of the tools.
        iterations (int): that are timed.
        data_root (str, optional): in place of the config's.
        slot (mapping): environment variables of the process.
        threads (int): of the process.

    Raises:
        RuntimeError: if it cannot be timed; with the last lines of what was
            said.
    """
    with TemporaryDirectory() as folder:
        config, out = Path(folder) / 'config.py', Path(folder) / 'time.json'
        config.write_text(run.config().pretty_text)
        command = [sys.executable, tools / 'benchmarks/training_time.py',
                   config, '--iterations', iterations, '--out', out]
        if data_root:
            command += ['--data-root', data_root]
        done = subprocess.run(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors='replace', env=environment_of(slot, threads))
        if done.returncode:
            lines = done.stdout.splitlines()[-LAST_LINES:]
            raise RuntimeError('\n'.join([
                f'methods.{run.method.name}: expected a training that can be '
                f'timed, got exit code {done.returncode}; correct what its '
                'last lines say:', *lines]))
        return json.loads(out.read_text())['seconds']
