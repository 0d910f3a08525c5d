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
        here = psutil.Process()
        below = here.children(recursive=True)
        item.add_report_section('call', 'stacks', '\n'.join(
            map(stack, [here, *below])))
        try:
            fail(signum, frame)  # does nothing in a debugger
        except BaseException:
            for process in below:  # not the services of earlier tests
                with suppress(psutil.NoSuchProcess):
                    if process.create_time() >= began:
                        process.kill()
            raise

    signal.signal(signal.SIGALRM, end)
    return done


def stack(process: psutil.Process) -> str:
    """Of a process, if it is Python."""
    spy = Path(sysconfig.get_path('scripts'), 'py-spy')
    done = subprocess.run([spy, 'dump', '--pid', str(process.pid)],
                          capture_output=True, text=True, timeout=60)
    return done.stdout or f'{process}: {done.stderr.splitlines()[:1]}\n'
