import functools
import os

import pytest
import resume_run
import torch
from mmengine.config import Config
from mmengine.fileio import LocalBackend, register_backend
from resume_run import assert_same, checkpoints, final_state, seen

from stepnet_mm.resume import AtomicLocalBackend

FALLING = dict(type='FallingMetric')
train = functools.partial(resume_run.train, interval=5)
resumed = functools.partial(resume_run.resumed, interval=5)


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.core
def test_as_many_are_kept_as_asked_for(tmp_path, monkeypatch):
    """Old ones go when the new one is complete."""
    there = []
    put = AtomicLocalBackend.put
    monkeypatch.setattr(AtomicLocalBackend, 'put', lambda self, obj, path: (
        there.append(checkpoints(tmp_path)), put(self, obj, path)))
    train(tmp_path, val_evaluator=FALLING, checkpoint=dict(
        max_keep_ckpts=1, save_best='loss', rule='less'))
    for kind in ('iter', 'best'):
        kept = [sum(n.startswith(kind) for n in names) for names in there]
        assert all(kept[kept.index(1):])
    assert checkpoints(tmp_path) == ['iter_33.pth', 'best_loss_iter_33.pth']
    assert (tmp_path / 'last_checkpoint').read_text().endswith('/iter_33.pth')
    best = torch.load(tmp_path / 'best_loss_iter_33.pth', weights_only=False)
    assert 'optimizer' not in best and 'training_state' not in best


@pytest.mark.core
def test_killed_during_a_save(tmp_path, monkeypatch, whole):
    replace = os.replace

    def killed(source, target):
        if 'iter_10' in str(target):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, 'replace', killed)
        train(tmp_path)
    assert 'iter_10.pth.unfinished' in os.listdir(tmp_path)
    assert (tmp_path / 'last_checkpoint').read_text().endswith('/iter_5.pth')
    assert_same(whole(), final_state(train(tmp_path, resume=True)))
    assert not [n for n in os.listdir(tmp_path) if 'unfinished' in n]


@pytest.mark.core
def test_a_damaged_one_is_named_and_the_one_before_taken(tmp_path):
    train(tmp_path, stop=12)
    damage(tmp_path / 'iter_10.pth')
    logged, runner = resumed(tmp_path)
    assert sum('iter_10.pth is damaged' in line for line in logged) == 1
    assert seen(runner) == 96 - 15
    for name in checkpoints(tmp_path):
        damage(tmp_path / name)
    with pytest.raises(ValueError, match='expected a whole checkpoint in'):
        train(tmp_path, resume=True)


@pytest.mark.core
def test_the_first_start_of_a_job_that_resumes_has_its_weights(tmp_path):
    """load_from is for the first start, the work dir for all others."""
    train(tmp_path / 'a', stop=12)
    weights = str(tmp_path / 'a/iter_10.pth')
    settings = dict(resume=True, load_from=weights, cfg=Config(
        dict(auto_resume=True)))
    first = train(tmp_path / 'b', 1, where='before_train', **settings)
    assert_same(torch.load(weights, weights_only=False)['state_dict'],
                first.model.state_dict())
    assert first.iter == 0
    train(tmp_path / 'b', stop=12, **settings)
    assert seen(train(tmp_path / 'b', **settings)) == 96 - 30


def test_the_best_one_of_another_run_stays(tmp_path):
    settings = dict(checkpoint=dict(save_best=['loss', 'acc'], rule='less'),
                    val_evaluator=FALLING)
    train(tmp_path / 'a', stop=13, **settings)
    before = checkpoints(tmp_path / 'a')
    assert 'best_loss_iter_11.pth' in before
    train(tmp_path / 'b', resume=True,
          load_from=str(tmp_path / 'a/iter_11.pth'), **settings)
    assert checkpoints(tmp_path / 'a') == before
    assert 'best_loss_iter_33.pth' in checkpoints(tmp_path / 'b')


@pytest.mark.core
def test_a_validation_resumes_nothing(tmp_path):
    """As with the config that a training with --resume wrote."""
    train(tmp_path, stop=7)
    weights = str(tmp_path / 'iter_5.pth')
    runner = resume_run.resume_runner(
        tmp_path, resume=True, load_from=weights,
        cfg=Config(dict(auto_resume=True)))
    loaded = []
    runner.resume = loaded.append  # mmengine's own would build the loop
    runner.val()
    assert loaded == [weights]
    assert isinstance(runner._train_loop, dict)


@register_backend('other')
class OtherBackend(LocalBackend):
    """Storage that has a way of its own, as an object store."""
    written = []

    def put(self, obj, filepath):
        self.written.append(os.path.basename(filepath))
        super().put(obj, filepath)


@pytest.mark.core
def test_another_storage_keeps_its_own_way(tmp_path):
    settings = dict(checkpoint=dict(backend_args=dict(backend='other')))
    train(tmp_path, stop=22, interval=10, **settings)
    assert seen(train(tmp_path, interval=20, resume=True, **settings)) == 37
    assert OtherBackend.written == [
        'iter_10.pth', 'iter_20.pth', 'iter_33.pth']


def test_other_settings_alone_are_named(tmp_path):
    with pytest.raises(TypeError, match='max_keep_ckpt'):  # misspelt
        train(tmp_path, checkpoint=dict(max_keep_ckpt=3))
    train(tmp_path, stop=10)
    assert not [line for line in resumed(tmp_path)[0] if 'goes on as' in line]
    logged, _ = resumed(
        tmp_path,
        optim_wrapper=dict(
            optimizer=dict(type='Adam', lr=.5, betas=(.8, .999))),
        param_scheduler=[
            dict(type='LinearLR', start_factor=.2, end=20, by_epoch=False)],
        cfg=Config(dict(randomness=dict(seed=5))))
    line, = [line for line in logged if 'goes on as' in line]
    named = ['randomness.seed goes on as 0, not as 5',
             'optimizer.lr goes on as [0.01], not as [0.5]',
             'optimizer.betas goes on as [(0.9, 0.999)], not as [(0.8,',
             'param_scheduler.start_factor goes on as [0.1], not as [0.2]']
    assert all(text in line for text in named)
