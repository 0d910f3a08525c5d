import os
import signal
from types import SimpleNamespace

from stepnet_mm.utils import worker_signals


def test_a_worker_obeys_its_trainer_alone(monkeypatch):
    senders, ended = [7, 8], []
    monkeypatch.setattr(
        signal, 'sigwaitinfo',
        lambda signals: SimpleNamespace(si_pid=senders.pop()), raising=False)
    monkeypatch.setattr(os, '_exit', ended.append)
    worker_signals._obey(7)
    assert not senders and ended == [0]
