import os
import signal
import subprocess
import time
from multiprocessing import get_context

import pytest

from stepnet_mm.utils.job_signals import SignalListener


@pytest.fixture
def listener():
    listener = SignalListener()
    listener.start()
    yield listener
    listener.stop()


def test_each_training_listens_anew(listener):
    """And ends the listening of one that was preempted."""
    signal.raise_signal(signal.SIGUSR1)
    assert listener.received
    following = SignalListener()
    following.start()
    assert signal.getsignal(signal.SIGTERM) == following._receive
    following.stop()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    listener.start()
    assert not listener.received


def test_a_signal_keeps_the_users_handler(listener):
    came = []
    listener.stop()
    signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    assert listener.start() == [signal.SIGUSR1]
    signal.raise_signal(signal.SIGUSR1)
    assert came and not listener.received
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert listener.start() == []


def test_a_second_signal_ends_the_process(listener, monkeypatch):
    """One within the same second counts as the first."""
    codes, times = [], iter([5, 5.9, 6.1])
    monkeypatch.setattr(os, '_exit', codes.append)
    monkeypatch.setattr(time, 'monotonic', lambda: next(times))
    for ended in [], [], [128 + signal.SIGTERM]:
        signal.raise_signal(signal.SIGTERM)
        assert codes == ended


def test_a_child_of_multiprocessing_ends_when_its_parent_says_so(listener):
    """As the pool of mmdet's VOCMetric, which hung here for good.

    Loader workers, which ignore the signals in the same way, too.
    """
    fork = get_context('fork')
    started = fork.Event()
    child = fork.Process(target=lambda: (started.set(), time.sleep(60)))
    child.start()
    assert started.wait(60)
    # Slurm signals every process of a job.
    for name in ('-USR1', '-TERM'):
        subprocess.run(['kill', name, str(child.pid)], check=True)
    time.sleep(.5)
    assert child.is_alive()
    child.terminate()
    child.join(20)
    assert child.exitcode == 0
    assert not listener.received
