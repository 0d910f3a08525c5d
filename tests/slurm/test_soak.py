"""Kills and preemptions: nothing is lost, the end is the same."""
import random
import signal
import time

import jobs
import pytest
from waiting import until

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint
from stepnet_mm.utils.files import UNFINISHED

SETTINGS = (
    '--cfg-options', 'train_cfg.max_epochs=12',
    'default_hooks.checkpoint.interval=4', 'default_hooks.slow.type=SlowHook',
    'default_hooks.slow.seconds=0.05')
EVENTS = 'kill in a save', 'preempt', 'kill', 'kill in a save', 'preempt'


@pytest.mark.soak
def test_soak(tmp_path):
    whole, folder = tmp_path / 'whole', tmp_path / 'soak'
    jobs.train_in_forks(whole, *SETTINGS)
    draw = random.Random(0)
    for event in EVENTS:
        before = jobs.iteration(folder)
        with jobs.ranks_in_forks(folder, *SETTINGS, '--resume') as ranks:
            until(lambda: jobs.iteration(
                folder) > before + 2, 240)  # noqa: B023
            time.sleep(draw.random() * .5)
            if event == 'kill in a save':
                # Without a pause: it is there for less than 1 ms.
                until(lambda: [*folder.glob(f'*{UNFINISHED}')], 240, 0)
            before = jobs.iteration(folder)
            for rank in ranks:
                rank.signal(signal.SIGUSR1 if event == 'preempt'
                            else signal.SIGKILL, group=True)
            codes = [rank.wait(120) for rank in ranks]
        assert codes == [75 if event == 'preempt' else -signal.SIGKILL] * 2
        path, damaged = latest_checkpoint(str(folder), template='iter_{}.pth')
        assert path and not damaged and jobs.iteration(folder) >= before
    jobs.train_in_forks(folder, *SETTINGS, '--resume')
    jobs.assert_same_end(jobs.saved(whole), jobs.saved(folder))
