import os
import signal
from types import SimpleNamespace

from stepnet_mm.utils.worker_signals import IgnoreSignals


def test_a_worker_obeys_its_trainer_alone(monkeypatch):
    ignore = IgnoreSignals(None, [signal.SIGTERM])
    senders, ended = [ignore.trainer, ignore.trainer + 1], []
    monkeypatch.setattr(
        signal, 'sigwaitinfo',
        lambda signals: SimpleNamespace(si_pid=senders.pop()), raising=False)
    monkeypatch.setattr(os, '_exit', ended.append)
    ignore._obey()
    assert not senders and ended == [0]
