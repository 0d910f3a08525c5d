"""Runs one check: python -m stepnet_mm.device_checks.child NAME DEVICE ROWS.

ROWS is the file to which each row is added as a line of JSON, at once: what
was found before a crash is kept.
"""
import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path

from ..launch.report import Report, Unavailable, one_line
from .series import REPORT_IT


class RowFile(Report):
    """A report that writes its rows into a file.

    Args:
        path (Path): the file.
    """

    def __init__(self, path: Path):
        super().__init__()
        self.path = path

    def add(self, level: str, text: str, **values) -> None:
        """Add a row to the file."""
        with self.path.open('a') as file:
            file.write(json.dumps(
                dict(level=level, text=text, **values)) + '\n')


def run(name: str, device: str, rows: Path) -> None:
    """Run a check; what it raises is a row."""
    report = RowFile(rows)
    try:
        torch = importlib.import_module('torch')
        module = importlib.import_module(f'{__package__}.{name}')
        module.check(report, torch.device(device))
    except Unavailable as error:
        report.skip(str(error))
    except Exception as error:
        report.error(one_line(error), REPORT_IT)


def end_with_the_doctor() -> None:
    """Kill this process and all it started when the doctor is gone.

    However that ended, the pipe to the standard input is closed then.
    """
    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os.killpg(0, signal.SIGKILL)

    if os.getsid(0) == os.getpid():  # the doctor started it, not a shell
        threading.Thread(target=wait, daemon=True).start()


if __name__ == '__main__':
    end_with_the_doctor()
    run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
