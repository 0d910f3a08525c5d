"""A study of scripts, and a runner of it, in this process or another."""
import shutil
import threading
import time
from pathlib import Path

import torch

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record
from stepnet_mm.studies.records import read_records
from stepnet_mm.studies.runner import StudyRunner
from stepnet_mm.studies.study import read_study

HERE = Path(__file__).resolve().parent
CONFIG = '''
train_cfg = dict(by_epoch=True, max_epochs=2)
train_dataloader = dict(dataset=dict(type='A', data_root='data'))
val_dataloader = dict(dataset=dict(type='A', data_root='data'))
behaviour = 'good'
'''


def make_tools(folder):
    """A train.py that does as its config says, and a measurement."""
    shutil.copytree(HERE / 'fake_tools', folder)
    path = folder / 'record.jsonl'
    begin_record(path, RecordHeader('residual', ['a', 'b'], [1, 1], [1, 2], 2))
    append_rows(path, 0, torch.tensor([[.1, .2], [.3, .4]]), torch.ones(2, 2))
    return folder


def make_study(folder, text='', seeds=(0, ), **methods):
    """A study with these options of each method, and more lines."""
    (folder / 'config.py').write_text(CONFIG)
    methods = {name: dict(config='config.py', options=options)
               for name, options in (methods or dict(good={})).items()}
    (folder / 'made.py').write_text(
        f'methods = {methods!r}\nseeds = {list(seeds)}\n{text}\n')
    return read_study(folder / 'made.py')


def runner_of(tools, folder, **settings):
    """A StudyRunner; what it says goes into its list `said`."""
    said = []
    runner = StudyRunner(tools, folder / 'results/made.jsonl', say=said.append,
                         **settings)
    runner.said = said
    return runner


def recorded(runner):
    """Key of a run -> its record."""
    return {record.key: record for record in read_records(runner.records)}


def starts_of(run, tool='train'):
    """The process numbers of the tool's starts."""
    path = run.folder / f'{tool}.starts'
    return path.read_text().split() if path.exists() else []


def once(condition, do, seconds=20):
    """In a thread: wait for a condition, then do something."""

    def wait():
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            time.sleep(.02)
        do()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread
