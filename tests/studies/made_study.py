"""A study whose tools are a short script, so that it takes no time."""
import shutil
from pathlib import Path

import torch
from study_file import read_study

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record

CONFIG = '''
train_cfg = dict(by_epoch=True, max_epochs=2)
train_dataloader = dict(dataset=dict(type='A', data_root='data'))
val_dataloader = dict(dataset=dict(type='A', data_root='data'))
behaviour = 'finish()'
'''
TOOLS = ('train', 'test', 'analysis/measure_stiffness',
         'analysis/ablate_steps', 'analysis/robustness')


def make_tools(folder):
    """The tools, and the record that measure_stiffness.py copies."""
    (folder / 'analysis').mkdir(parents=True)
    for name in TOOLS:
        shutil.copy(Path(__file__).with_name('fake_tool.py'),
                    folder / f'{name}.py')
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
    """How often the tool was started."""
    path = run.folder / f'{tool}.starts'
    return len(path.read_text().split()) if path.exists() else 0
