"""A study of one tiny training, as a user runs it, on a real Slurm."""
import os
import subprocess
import sys

import psutil
import pytest
import torch
from drawn_cifar import draw_cifar
from jobs import ROOT
from outcome import record_of
from records import read_records
from resume_run import assert_same
from study_file import read_study, runs_of
from waiting import until

pytestmark = pytest.mark.xdist_group('slurm')
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
        folder.mkdir()
        (folder / 'tiny.py').write_text(TEXT)
        draw_cifar(folder / 'my data', train=4, test=2)
        self.run, = runs_of(
            read_study(folder / 'tiny.py'), folder / 'work_dirs/tiny')

    def start(self, *words):
        """A study.sh at work."""
        with open(self.folder / 'said.txt', 'w') as file:
            return subprocess.Popen(
                ['bash', ROOT / 'tools/study.sh', 'tiny.py',
                 'data_root=my data', *words], cwd=self.folder,
                env=self.environment, stdout=file, stderr=file)

    def ends(self, process, code):
        assert process.wait() == code, (self.folder / 'said.txt').read_text()

    def log(self):
        """What the run's tools and jobs have printed."""
        path = self.run.folder / 'output.log'
        return path.read_text() if path.exists() else ''

    def iterations(self):
        """How many the run has logged."""
        return sum(path.read_text().count('"iter"') for path
                   in self.run.folder.glob('*/vis_data/scalars.json'))


@pytest.mark.long
def test_preempted_requeued_and_its_engine_killed(lab, tmp_path, studies_venv):
    """It ends as one that nothing stopped."""
    whole = TinyStudy(tmp_path / 'whole', studies_venv)
    undisturbed = whole.start()
    study = TinyStudy(tmp_path / 'stopped', studies_venv,
                      SLURM_CONF=lab.environment['SLURM_CONF'])
    words = 'sbatch=--partition=main --time=30',
    process = study.start(*words)
    until(lambda: study.iterations() > 2, 600)
    job, = lab.run('squeue', f'--name=tiny.{NAME}', '-ho', '%i').split()
    lab.run('scontrol', 'requeue', job)  # as Slurm preempts a job
    until(lambda: 'PreemptionHook: saved' in study.log(), 600)
    engine, = (child for child in psutil.Process(process.pid).children()
               if any('snakemake' in word for word in child.cmdline()))
    engine.kill()
    study.ends(process, 137)
    study.ends(study.start(*words), 0)
    whole.ends(undisturbed, 0)
    assert 'start 2, 1 ranks' in study.log()
    ours, = read_records(study.folder / 'results/tiny.jsonl')
    theirs = record_of(whole.run)
    assert ours.name == NAME and len(ours.epochs) == 2
    for key in ('epochs', 'last', 'best', 'config', 'stiffness'):
        assert getattr(ours, key) == getattr(theirs, key), key
    ends = [torch.load(one.run.folder / 'epoch_2.pth', weights_only=False)
            for one in (study, whole)]
    for key in 'state_dict', 'optimizer':
        assert_same(ends[0][key], ends[1][key], key)
