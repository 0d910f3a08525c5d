"""A study of scripts."""
import shutil
from pathlib import Path

import torch
from study_file import read_study

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record

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


def starts_of(run, tool='train'):
    """The process numbers of the tool's starts."""
    path = run.folder / f'{tool}.starts'
    return path.read_text().split() if path.exists() else []
