"""Waits for what other processes do."""
import time


def until(condition, seconds=60, every=.02):
    """Returns when the condition holds, which it has to in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(every)
