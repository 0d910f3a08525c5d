"""A study of one tiny training, as a user runs it, on Snakemake."""
import os
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import psutil
import torch
from resume_run import assert_same
from study_file import read_study, runs_of
from study_outcome import record_of
from study_records import read_records

ROOT = Path(__file__).resolve().parents[2]
TEXT = f'''
methods = dict(stepnet=dict(
    config='{ROOT}/configs/resnet164/resnet164_stepnet_cifar10.py'))
options = {{
    'model.backbone.depth': 20, 'train_dataloader.batch_size': 4,
    'train_dataloader.num_workers': 0, 'val_dataloader.num_workers': 0,
    'train_cfg.max_epochs': 2, 'default_hooks.logger.interval': 1,
    'val_evaluator': [dict(type='Accuracy', topk=(1, )),
                      dict(type='TNSMetric')]}}
measure = dict(num_samples=10)
'''
NAME = 'stepnet_seed0'


class TinyStudy:
    """The calls of study.sh in a folder, with a venv that has Snakemake."""

    def __init__(self, folder, venv, **environment):
        self.folder = folder
        self.environment = dict(
            os.environ, **environment, STUDIES_VENV=venv,
            PYTHON=sys.executable, OMP_NUM_THREADS='1')
        (folder / 'tiny.py').write_text(TEXT)
        write_noise(folder / 'my data')
        self.run, = runs_of(
            read_study(folder / 'tiny.py'), folder / 'work_dirs/tiny')

    def start(self, *words):
        """A study.sh at work."""
        with open(self.folder / 'said.txt', 'w') as file:
            return subprocess.Popen(
                ['bash', ROOT / 'tools/study.sh', 'tiny.py',
                 'data_root=my data', *words], cwd=self.folder,
                env=self.environment, stdout=file, stderr=file)

    @property
    def said(self):
        """What the last call has said."""
        return (self.folder / 'said.txt').read_text()

    @property
    def log(self):
        """What the run's tools and jobs have printed."""
        path = self.run.folder / 'output.log'
        return path.read_text() if path.exists() else ''

    def iterations(self):
        """How many the run has logged."""
        return sum(path.read_text().count('"iter"') for path
                   in self.run.folder.glob('*/vis_data/scalars.json'))

    def until(self, condition, seconds=600):
        """Wait for something."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.said
            time.sleep(.1)

    def assert_equal(self, whole):
        """The record and the weights are those of an undisturbed run."""
        ours, = read_records(self.folder / 'results/tiny.jsonl')
        theirs = record_of(whole)
        assert ours.name == NAME and len(ours.epochs) == 2
        for key in ('epochs', 'last', 'best', 'config', 'stiffness'):
            assert getattr(ours, key) == getattr(theirs, key), key
        ends = [torch.load(run.folder / 'epoch_2.pth', weights_only=False)
                for run in (self.run, whole)]
        for key in 'state_dict', 'optimizer':
            assert_same(ends[0][key], ends[1][key], key)


def undisturbed(folder):
    """The run of a study without Snakemake that nothing stops."""
    study = TinyStudy(folder, '/dev/null/none')
    assert study.start().wait() == 0, study.said
    return study.run


def write_noise(folder):
    """CIFAR-10 of noise: 40 images to train with, 20 to test with."""
    from mmpretrain.datasets import CIFAR10
    rng = np.random.default_rng(0)
    for split, number in (('train', 4), ('test', 2)):
        for name in CIFAR10.METAINFO['classes']:
            (folder / split / name).mkdir(parents=True)
            for i in range(number):
                cv2.imwrite(str(folder / split / name / f'{i}.png'),
                            rng.integers(0, 256, (32, 32, 3), np.uint8))


def kill_engine(process):
    """KILL to the Snakemake of a study.sh, and to nothing else."""
    engine, = (child for child in psutil.Process(process.pid).children()
               if any('snakemake' in word for word in child.cmdline()))
    engine.kill()
