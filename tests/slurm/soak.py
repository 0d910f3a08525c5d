#!/usr/bin/env python
"""Kill and requeue a training again and again; compare its end bit for bit.

python tests/slurm/soak.py WORK_DIR    # 20 kills, 5 requeues: 13 minutes

Needs Slurm and root: two ranks on two virtual nodes. Some kills wait until a
checkpoint is being written. Prints what happened as JSON and ends with 1 if
anything was lost.
"""
import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT), str(ROOT / 'tests' / 'resume')]
from jobs import (  # noqa: E402
    differing,
    iteration,
    log_of,
    options,
    ranks_of,
    saved,
    submit,
)
from lab import Lab, missing  # noqa: E402

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint  # noqa: E402
from stepnet_mm.utils.files import UNFINISHED  # noqa: E402

#: Every how many kills one waits for a save.
IN_A_SAVE = 3


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('work_dir', type=Path, help='a new folder')
    parser.add_argument('--kills', type=int, default=20)
    parser.add_argument('--requeues', type=int, default=5)
    parser.add_argument('--epochs', type=int, default=30)
    parser.add_argument('--seed', type=int, default=0)
    return parser.parse_args()


class Soak:
    """One training, its disturbances, and a count of what was found.

    Args:
        lab (Lab): a running Slurm.
        folder (Path): work dir of the training.
        epochs (int): 13 iterations each.
        pause (float): seconds after each; the disturbances must find it
            training to the last.
    """

    def __init__(self, lab, folder, epochs, pause=0):
        self.lab, self.folder = lab, folder
        self.settings = options(**{
            'train_cfg.max_epochs': epochs,
            'model.ballast': 10,
            'default_hooks.checkpoint.interval': 4,
            'default_hooks.slow.type': 'SlowHook',
            'default_hooks.slow.seconds': pause,
            'custom_hooks.1.interval': 5})
        self.found = dict(kills=0, kills_in_a_save=0, requeues=0, damaged=0,
                          lost=0, went_back=0)
        self.job = None

    def start(self):
        self.job = submit(self.lab, self.folder, *self.settings)

    def wait_for_progress(self):
        """Until this life of the run has saved something of its own."""
        before = iteration(self.folder)
        self.lab.wait(
            lambda: self.over() or iteration(self.folder) > before + 2, 300)

    def over(self):
        return self.lab.field(self.job, 'JobState') in ('COMPLETED', 'FAILED')

    def kill(self, in_a_save):
        """KILL to all ranks at once, somewhere or amid a save."""
        ranks = ranks_of(self.folder)  # a look that outlasts a save
        if not ranks:
            raise RuntimeError('the training ended before its last kill; '
                               'raise --epochs')
        if in_a_save:
            end = time.monotonic() + 30
            while not self.unfinished() and time.monotonic() < end:
                time.sleep(.001)  # the ranks want the core
        for number in ranks:
            os.kill(number, signal.SIGKILL)
        self.found['kills'] += 1
        self.lab.wait(self.over, 240)
        self.found['kills_in_a_save'] += bool(self.unfinished())

    def unfinished(self):
        return [name for name in os.listdir(self.folder)
                if name.endswith(UNFINISHED)]

    def requeue(self):
        self.found['requeues'] += 1
        before = self.lab.field(self.job, 'Restarts')
        self.lab.run('scancel', '--signal=USR1', self.job)
        self.lab.wait(
            lambda: self.lab.field(self.job, 'Restarts') != before, 240)

    def look(self, before):
        """Is the state that was there, or a later one, there and whole?"""
        path, damaged = latest_checkpoint(
            str(self.folder), template='iter_{}.pth')
        self.found['damaged'] += len(damaged)
        self.found['lost'] += path is None
        self.found['went_back'] += iteration(self.folder) < before

    def run(self, kills, requeues, draw):
        events = ['kill'] * kills + ['requeue'] * requeues
        draw.shuffle(events)
        self.start()
        for event in events:
            self.wait_for_progress()
            time.sleep(draw.random() * .5)
            before = iteration(self.folder)
            if event == 'kill':
                self.kill(self.found['kills'] % IN_A_SAVE == 0)
                self.look(before)
                self.start()
            else:
                self.requeue()
                self.look(before)
            print(f'{event} after iteration {before}: {self.found}',
                  flush=True)
        self.finish()

    def finish(self):
        self.lab.wait(self.over, 600)
        state = self.lab.field(self.job, 'JobState')
        if state != 'COMPLETED':
            raise RuntimeError(f'{state}\n{log_of(self.folder)[-3000:]}')


def main():
    args = parse_args()
    if missing():
        sys.exit(f'soak: {missing()}')
    args.work_dir = args.work_dir.resolve()
    start = time.monotonic()
    with Lab(tempfile.mkdtemp()) as lab:
        whole = Soak(lab, args.work_dir / 'whole', args.epochs)
        whole.start()
        whole.finish()
        soak = Soak(lab, args.work_dir / 'soak', args.epochs, pause=.05)
        soak.run(args.kills, args.requeues, random.Random(args.seed))
    ends = [saved(one.folder) for one in (whole, soak)]
    found = dict(soak.found, iterations=ends[0]['meta']['iter'],
                 seconds=round(time.monotonic() - start),
                 differing=differing(*ends))
    print(json.dumps(found))
    (args.work_dir / 'soak.json').write_text(json.dumps(found))
    wrong = ('damaged', 'lost', 'went_back', 'differing')
    sys.exit(any(found[key] for key in wrong))


if __name__ == '__main__':
    main()
