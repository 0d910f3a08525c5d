"""Kills and preemptions: nothing is lost, the end is the same."""
import random
import signal
import time

import pytest
from jobs import (
    assert_same_end,
    iteration,
    options,
    ranks_in_forks,
    saved,
    train_in_forks,
)
from waiting import until

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint
from stepnet_mm.utils.files import UNFINISHED

SETTINGS = options(**{
    'train_cfg.max_epochs': 12, 'default_hooks.checkpoint.interval': 4,
    'default_hooks.slow.type': 'SlowHook', 'default_hooks.slow.seconds': .05})
EVENTS = 'kill in a save', 'preempt', 'kill', 'kill in a save', 'preempt'


@pytest.mark.soak
def test_soak(tmp_path):
    whole, folder = tmp_path / 'whole', tmp_path / 'soak'
    train_in_forks(whole, *SETTINGS)
    draw = random.Random(0)
    for event in EVENTS:
        before = iteration(folder)
        with ranks_in_forks(folder, *SETTINGS, '--resume') as ranks:
            until(lambda: iteration(folder) > before + 2, 240)  # noqa: B023
            time.sleep(draw.random() * .5)
            if event == 'kill in a save':
                # Without a pause: it is there for less than 1 ms.
                until(lambda: [*folder.glob(f'*{UNFINISHED}')], 240, 0)
            before = iteration(folder)
            for rank in ranks:
                rank.signal(signal.SIGUSR1 if event == 'preempt'
                            else signal.SIGKILL, group=True)
            codes = [rank.wait(120) for rank in ranks]
        assert codes == [75 if event == 'preempt' else -signal.SIGKILL] * 2
        path, damaged = latest_checkpoint(str(folder), template='iter_{}.pth')
        assert path and not damaged and iteration(folder) >= before
    train_in_forks(folder, *SETTINGS, '--resume')
    assert_same_end(saved(whole), saved(folder))
