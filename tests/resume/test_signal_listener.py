import signal

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
