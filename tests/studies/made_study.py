"""Studies that nobody ran: records, and tools that take no time."""
import shutil
from pathlib import Path

import torch
from records import StudyRecord
from study_file import read_study

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record

CONFIG = '''
train_cfg = dict(by_epoch=True, max_epochs=2)
train_dataloader = dict(dataset=dict(type='A', data_root='data'))
val_dataloader = dict(dataset=dict(type='A', data_root='data'))
behaviour = 'finish()'
'''
TOOLS = ('train', 'test', 'analysis/measure_stiffness',
         'analysis/ablate_steps')
DEFINITIONS = dict(residual=1., output=.4, update=.5)


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
    path = run.folder / f'{tool}.starts'
    return len(path.read_text().split()) if path.exists() else 0


def diverged_run(method='plain', seed=0, **fields):
    return StudyRecord(**{**dict(
        study='made', method=method, seed=seed, settings='s', config=method,
        dataset='FolderCIFAR10 a/b', metric='accuracy/top1', diverged=True,
        date='2026-11-23'), **fields})


def made_run(method='plain', seed=0, last=50., tns=1., step=None, **fields):
    """A run whose accuracy rises by a point an epoch to ``last``.

    Two blocks in each of two stages, with a mean Δt of ``step`` in the first
    stage and half of it in the second.
    """
    return diverged_run(method, seed, **{**dict(
        epochs=[{'epoch': i, 'loss': 1. / i, 'accuracy/top1': last - 4 + i}
                for i in (1, 2, 3, 4)],
        diverged=False, last=last, best=last + 1,
        stiffness={
            name: dict(
                tns=scale * tns, tns_median=.5 * scale * tns, nsi=2 * tns,
                samples=100, lost=0,
                blocks=[dict(stage=1 + i // 2, nsi=scale * tns * (i + 1),
                             step=step and step / (1 + i // 2))
                        for i in range(4)])
            for name, scale in DEFINITIONS.items()},
        commit='abc', versions=dict(torch='2.0'), machine='a | b, 1 threads',
        cpu_seconds=60.), **fields})


def made_steps(per_block=50., mean=.2):
    """The field of a record where Δt was held fixed."""
    return dict(trained=50., per_channel=50., per_block=per_block, mean=mean,
                over_samples=.01, over_positions=0., over_channels=.02)
