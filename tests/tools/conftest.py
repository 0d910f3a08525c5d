"""Run a tool as a user does, but in this process; a browser for pages."""
import json
import math
import runpy
import signal
import sys
from itertools import product

import cv2
import numpy as np
import pytest
import torch
from mini_coco import make_mini_coco

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record


@pytest.fixture
def tool(monkeypatch, request, forget_runs):
    """tool('train', 'config.py', '--work-dir', folder)"""
    root = request.config.rootpath

    def run(name, *arguments):
        monkeypatch.setattr(sys, 'argv', [f'{name}.py', *map(str, arguments)])
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        forget_runs()
        try:
            runpy.run_path(
                str(root / 'tools' / f'{name}.py'), run_name='__main__')
        finally:
            # A train.py that stops early holds signals back for good, and
            # so would what later tests start.
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return run


@pytest.fixture
def printed(tool, capsys):
    """printed('analysis/plot', 'training', folder): what that tool prints."""

    def printed(*arguments):
        capsys.readouterr()
        tool(*arguments)
        return capsys.readouterr().out

    return printed


@pytest.fixture
def write_record(tmp_path):
    """write_record('SE', nsi, blocks=...): a record's path; no Δt is known"""

    def write(name, nsi, steps=None, **header):
        path = tmp_path / f'{name}.jsonl'
        fields = dict(definition='residual', samples=len(nsi),
                      meta=dict(name=path.stem))
        begin_record(path, RecordHeader(**{**fields, **header}))
        append_rows(path, 0, nsi, torch.full_like(nsi, math.nan)
                    if steps is None else steps)
        return path

    return write


@pytest.fixture
def write_log():
    """write_log(work_dir, '1', rows, 'probe'): of a start, and a cut line."""

    def write(work_dir, start, rows, hook='stiffness'):
        path = work_dir / start / 'vis_data' / f'{hook}.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(''.join(json.dumps({
            key if key == 'step' or '/' in key else f'{hook}/{key}': value
            for key, value in row.items()}) + '\n' for row in rows)
            + '{"stiffness/')

    return write


OBJECT = '''<object><name>{}</name><difficult>{}</difficult><bndbox>
<xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>
'''


@pytest.fixture
def voc(tmp_path):
    """Files in Pascal VOC's form: b, with three objects, is named before a."""
    root = tmp_path / 'voc'
    for folder in ('Annotations', 'JPEGImages', 'ImageSets/Main'):
        (root / folder).mkdir(parents=True)
    for name, found in dict(a=[], b=[
            ('dog', 0, 5, 6, 15, 26), ('cat', 1, 1, 1, 3, 2),
            ('cat', 0, 4, 4, 4, 9)]).items():
        cv2.imwrite(str(root / f'JPEGImages/{name}.jpg'),
                    np.zeros((40, 40, 3), 'uint8'))
        (root / f'Annotations/{name}.xml').write_text(
            '<annotation><size><width>40</width><height>40</height></size>'
            + ''.join(OBJECT.format(*each) for each in found)
            + '</annotation>')
    for split, names in dict(train='b\na\n', val='b\n').items():
        (root / f'ImageSets/Main/{split}.txt').write_text(names)
    return root


@pytest.fixture
def detector(request, tmp_path):
    """A detection config of a second an iteration, over a drawn dataset."""
    data = tmp_path / 'data'
    make_mini_coco(data, train=8, val=3, size=64)
    base = request.config.rootpath / 'configs'
    path = tmp_path / 'detector.py'
    path.write_text(f'''
_base_ = '{base}/faster_rcnn_r34_stepnet_mini_coco.py'
model = dict(
    backbone=dict(depth=18, base_channels=8, stem_channels=8),
    neck=dict(in_channels=[8, 16, 32, 64]))
dataset = dict(data_root='{data}')
loader = dict(num_workers=0, persistent_workers=False, dataset=dataset)
train_dataloader = dict(batch_size=2, **loader)
val_dataloader = loader
test_dataloader = loader
val_evaluator = dict(ann_file='{data}/annotations/instances_val2017.json')
test_evaluator = val_evaluator
train_cfg = dict(max_iters=4, val_interval=4)
default_hooks = dict(checkpoint=dict(interval=2, max_keep_ckpts=-1))
custom_hooks = [dict(type='TNSHook', interval=2), dict(type='LoadReportHook')]
''')
    return path


@pytest.fixture
def draw_folders():
    """draw_folders(root, 'train', 'val', cat=4, dog=7): images by class."""
    draws = np.random.default_rng(0)

    def draw(root, *splits, **classes):
        for split, (name, count) in product(splits, classes.items()):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                cv2.imwrite(str(folder / f'{i}.png'),
                            draws.integers(0, 256, (40, 40, 3)))
        return root

    return draw


@pytest.fixture
def classifier(tmp_path, draw_folders):
    """A classification config over a folder of 8 images a split."""
    draw_folders(tmp_path / 'images', 'train', 'val', dark=4, light=4)
    path = tmp_path / 'classifier.py'
    path.write_text(f'''
_base_ = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', stem_channels=8, base_channels=8),
    head=dict(in_channels=64, num_classes=2, topk=(1, )),
    data_preprocessor=dict(num_classes=2))
data = dict(
    _delete_=True, type='CustomDataset', data_root='{tmp_path}/images',
    pipeline=[dict(type='LoadImageFromFile'),
              dict(type='Resize', scale=32), dict(type='PackInputs')])
loader = dict(batch_size=4, num_workers=0, persistent_workers=False)
train_dataloader = dict(**loader, dataset=dict(**data, data_prefix='train'))
val_dataloader = dict(**loader, dataset=dict(**data, data_prefix='val'))
test_dataloader = val_dataloader
val_evaluator = dict(topk=(1, ))
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=2)
custom_hooks = [dict(type='TNSHook', interval=1)]
''')
    return path
