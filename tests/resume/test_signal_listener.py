import os
import signal
import subprocess
import time
from multiprocessing import get_context

import pytest

from stepnet_mm.resume.signal_listener import SignalListener


def test_each_training_listens_anew():
    listener = SignalListener([signal.SIGUSR1])
    for _ in range(2):
        listener.start()
        assert listener.listening and not listener.received
        signal.raise_signal(signal.SIGUSR1)
        assert listener.received
        listener.stop()
        assert not listener.listening


@pytest.fixture
def listener():
    listener = SignalListener([signal.SIGUSR1, signal.SIGTERM])
    listener.start()
    yield listener
    listener.stop()


def test_a_child_of_multiprocessing_ends_when_its_parent_says_so(listener):
    """As the pool of mmdet's VOCMetric, which hung here for good."""
    children = [get_context('fork').Process(target=time.sleep, args=(60, ))
                for _ in range(3)]
    for child in children:
        child.start()
        time.sleep(.2)
        # Slurm signals every process of a job.
        subprocess.run(['kill', '-USR1', str(child.pid)], check=True)
        subprocess.run(['kill', '-TERM', str(child.pid)], check=True)
    time.sleep(1.1)  # two signals within a second are one
    for child in children:
        assert child.is_alive()
        child.terminate()
        child.join(20)
        assert child.exitcode == 0
    assert not listener.received
    signal.raise_signal(signal.SIGTERM)  # the first, which a second ends
    time.sleep(.1)
    assert listener.received


def test_another_child_has_the_handlers_of_before(listener):
    assert _end_of_a_child(signal.SIGTERM) == signal.SIGTERM


def test_a_preempted_training_leaves_no_handlers(listener):
    before = listener._handlers
    for _ in range(8):
        following = SignalListener(listener.signals)
        following.start()
    assert following._handlers == before
    assert _end_of_a_child(signal.SIGTERM) == signal.SIGTERM
    following.stop()
    assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]


def _end_of_a_child(number):
    child = os.fork()
    if not child:
        time.sleep(20)
        os._exit(0)
    time.sleep(.2)
    os.kill(child, number)
    return os.waitpid(child, 0)[1]
