"""Runs a function in a fork, with what a Popen has to end and to read it."""
import gc
import os
import sys
from multiprocessing import get_context
from pathlib import Path


class Forked:
    """A fork, in its own process group, that runs a function and ends.

    It has everything imported already; an interpreter of its own takes some
    ten seconds for that. As a context manager it ends with what is inside.
    In ``folder`` are its ``stdout`` and ``stderr``.
    """

    def __init__(self, folder, function, *args, **kwargs):
        self.folder = Path(folder)
        self._process = get_context('fork').Process(
            target=self._run, args=(function, args, kwargs))
        self._process.start()

    def _run(self, function, args, kwargs):
        # Garbage of tests before is not this process's: a data loader's
        # finalizer raises in a fork, and Python 3.11 that writes such an
        # error amid an ast.parse (a config's) breaks the parse.
        gc.freeze()
        os.setsid()
        for name in ('stdout', 'stderr'):
            setattr(sys, name, (self.folder / name).open('w', buffering=1))
        function(*args, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.poll() is None:
            self._process.kill()
        self._process.join()

    def poll(self):
        """Its exit code; None while it runs."""
        return self._process.exitcode

    def wait(self, seconds):
        """Its exit code; None if it still runs after so many seconds."""
        self._process.join(seconds)
        return self.poll()

    def signal(self, number, group=False):
        """Send it, or all of its process group, a signal."""
        (os.killpg if group else os.kill)(self._process.pid, number)

    def printed(self, name='stdout'):
        """All it has written so far."""
        path = self.folder / name
        return path.read_text() if path.exists() else ''
