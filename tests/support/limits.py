"""What a test may take; at its end the report has all its processes' stacks.

pytest-timeout keeps the time and fails the test; the seconds of most tests are
in .pytest.ini. It shows the threads of its own process only.
"""
import signal
import subprocess
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

#: Seconds of tests with a mark.
SECONDS = dict(soak=1800, long=600)


def pytest_collection_modifyitems(items):
    for item in items:
        for mark, seconds in SECONDS.items():
            if item.get_closest_marker(mark) and (
                    not item.get_closest_marker('timeout')):
                item.add_marker(pytest.mark.timeout(seconds))


@pytest.hookimpl(wrapper=True, optionalhook=True)  # without the plugin
def pytest_timeout_set_timer(item):
    began = time.time() - 1  # psutil's times are right to a second
    done = yield
    fail = signal.getsignal(signal.SIGALRM)

    def end(signum, frame):
        try:
            item.add_report_section('call', 'stacks', stacks())
            fail(signum, frame)  # does nothing in a debugger
        except BaseException:
            kill_children(began)
            raise

    signal.signal(signal.SIGALRM, end)
    return done


def stacks() -> str:
    """Of this process and all below it, as far as they are Python."""
    here = psutil.Process()
    return '\n'.join(map(stack, [here, *here.children(recursive=True)]))


def stack(process: psutil.Process) -> str:
    spy = Path(sysconfig.get_path('scripts'), 'py-spy')
    done = subprocess.run([spy, 'dump', '--pid', str(process.pid)],
                          capture_output=True, text=True, timeout=60)
    why, *_ = done.stderr.splitlines() or ['']
    return done.stdout or f'{process}: {why}\n'


def kill_children(began: float) -> None:
    """End what was started since, not the services of earlier tests."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.create_time() >= began:
                process.kill()
