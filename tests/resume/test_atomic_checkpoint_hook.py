import os
import re

import pytest
import torch
from mmengine.config import Config
from mmengine.fileio import BaseStorageBackend, FileClient, register_backend
from mmengine.optim import OptimWrapper, OptimWrapperDict
from resume_run import (
    Stopped,
    assert_same,
    final_state,
    resume_runner,
    warnings_of,
)

from stepnet_mm.resume import AtomicCheckpointHook, AtomicLocalBackend
from stepnet_mm.resume.training_state import accumulating

TEST = dict(
    test_dataloader=dict(
        dataset=dict(type='AugmentedDataset', size=6),
        sampler=dict(type='DefaultSampler', shuffle=False),
        batch_size=2),
    test_cfg=dict(),
    test_evaluator=dict(type='RandomMetric'))
FALLING = dict(type='FallingMetric')
WARM_UP = dict(type='LinearLR', start_factor=.1, end=20, by_epoch=False)


def checkpoints(folder):
    """Their names in order of the iterations."""
    names = [n for n in os.listdir(folder) if n.endswith('.pth')]
    return sorted(names, key=lambda n: (not n[0] == 'i', n[0], len(n), n))


def last(folder):
    return os.path.basename((folder / 'last_checkpoint').read_text())


def train(folder, stop=None, interval=5, hooks=(), **kwargs):
    hooks = [*hooks, *([dict(type='StopHook', at=stop)] if stop else [])]
    runner = resume_runner(folder, interval=interval, hooks=hooks, **kwargs)
    if stop:
        with pytest.raises(Stopped):
            runner.train()
    else:
        runner.train()
    return runner


def warned(folder, **kwargs):
    """What a resume warns of, and its runner."""
    runner = resume_runner(folder, interval=5, resume=True, **kwargs)
    lines = warnings_of(runner)
    runner.train()
    return lines, runner


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def seen(runner):
    return len(runner.train_dataloader.dataset.loaded)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """The end of a run that nothing disturbed."""
    return final_state(train(tmp_path_factory.mktemp('whole')))


@pytest.mark.core
def test_as_many_are_kept_as_asked_for(tmp_path):
    train(tmp_path)
    assert checkpoints(tmp_path) == ['iter_30.pth', 'iter_33.pth']
    assert last(tmp_path) == 'iter_33.pth'


@pytest.mark.core
def test_old_ones_go_when_the_new_one_is_complete(tmp_path, monkeypatch):
    there = []
    put = AtomicLocalBackend.put
    monkeypatch.setattr(AtomicLocalBackend, 'put', lambda self, obj, path: (
        there.append(checkpoints(tmp_path)), put(self, obj, path)))
    runner = train(tmp_path, val_evaluator=FALLING, checkpoint=dict(
        max_keep_ckpts=1, save_best='loss', rule='less'))
    for kind in ('iter', 'best'):
        kept = [sum(n.startswith(kind) for n in names) for names in there]
        assert all(kept[kept.index(1):])
    best = tmp_path / 'best_loss_iter_33.pth'
    assert checkpoints(tmp_path) == ['iter_33.pth', best.name]
    hook, = [h for h in runner.hooks if isinstance(h, AtomicCheckpointHook)]
    assert hook.best_ckpt_path == str(best)
    saved = torch.load(best, weights_only=False)
    assert 'optimizer' not in saved and 'training_state' not in saved


@pytest.mark.core
def test_killed_during_a_save(tmp_path, monkeypatch, whole):
    replace = os.replace

    def killed(source, target):
        if 'iter_10' in str(target):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, 'replace', killed)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path)
    assert 'iter_10.pth.unfinished' in os.listdir(tmp_path)
    assert last(tmp_path) == 'iter_5.pth'
    resumed = train(tmp_path, resume=True)
    assert_same(whole, final_state(resumed))
    assert not [n for n in os.listdir(tmp_path) if 'unfinished' in n]


@pytest.mark.core
def test_a_damaged_one_is_named_and_the_one_before_taken(tmp_path, whole):
    train(tmp_path, stop=12)
    damage(tmp_path / 'iter_10.pth')
    logged, runner = warned(tmp_path)
    assert len([line for line in logged
                if re.search(r'iter_10\.pth is damaged', line)]) == 1
    assert_same(whole, final_state(runner))


def test_a_path_that_is_given(tmp_path):
    """It is taken as it is, or refused; so is a folder without a whole one."""
    train(tmp_path, stop=12)
    path = tmp_path / 'iter_5.pth'
    logged, runner = warned(tmp_path, load_from=str(path))
    assert not logged and seen(runner) == 96 - 15
    for name in checkpoints(tmp_path):
        damage(tmp_path / name)
    with pytest.raises(ValueError,
                       match=r'iter_30\.pth: '):
        train(tmp_path, resume=True, load_from=str(tmp_path / 'iter_30.pth'))
    with pytest.raises(ValueError, match=r'expected a whole checkpoint in .*'
                       r'iter_33.*iter_30'):
        train(tmp_path, resume=True)


def test_a_pointer_that_is_garbage_and_no_checkpoint(tmp_path):
    (tmp_path / 'last_checkpoint').write_bytes(b'\xff')
    assert train(tmp_path, resume=True).iter == 33


@pytest.mark.core
def test_the_first_start_of_a_job_that_resumes_has_its_weights(tmp_path):
    """load_from is for the first start, the work dir for all others."""
    train(tmp_path / 'a', stop=12)
    weights = str(tmp_path / 'a/iter_10.pth')
    settings = dict(resume=True, load_from=weights, interval=5, cfg=Config(
        dict(auto_resume=True)))
    first = resume_runner(tmp_path / 'b', hooks=[
        dict(type='StopHook', where='before_train', at=1)], **settings)
    with pytest.raises(Stopped):
        first.train()
    assert_same(torch.load(weights, weights_only=False)['state_dict'],
                first.model.state_dict())
    assert first.iter == 0
    train(tmp_path / 'b', stop=12, **settings)
    assert seen(train(tmp_path / 'b', **settings)) == 96 - 30


def test_several_optimizers():
    """GANs step each of theirs themselves."""
    parts = {name: OptimWrapper(torch.optim.SGD(
        [torch.nn.Parameter(torch.zeros(1))], lr=.1)) for name in 'ab'}
    wrapper = OptimWrapperDict(**parts)
    assert not accumulating(wrapper)
    parts['b']._accumulative_counts, parts['b']._inner_count = 3, 2
    assert accumulating(wrapper)


@pytest.mark.parametrize('names', ['loss', ['loss', 'acc']])
def test_the_best_one_of_another_run_stays(tmp_path, names):
    settings = dict(
        checkpoint=dict(save_best=names, rule='less',
                        published_keys=['state_dict']),
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
    train(tmp_path, stop=12)
    weights = str(tmp_path / 'iter_5.pth')
    runner = resume_runner(
        tmp_path, interval=5, checkpoint=dict(save_best='loss', rule='less'),
        resume=True, load_from=weights, cfg=Config(dict(auto_resume=True)),
        **TEST)
    loaded = []
    runner.resume = loaded.append  # mmengine's own would build the loop
    runner.val()
    runner.test()
    runner.load_checkpoint(weights)
    assert set(loaded) == {weights}
    assert isinstance(runner._train_loop, dict)


@pytest.mark.core
def test_a_published_one(tmp_path):
    train(tmp_path, interval=20,
          checkpoint=dict(published_keys=['meta', 'state_dict']))
    name, = [n for n in checkpoints(tmp_path) if '-' in n]
    assert re.fullmatch(r'iter_33-[0-9a-f]{8}\.pth', name)
    saved = torch.load(tmp_path / name, weights_only=False)
    assert list(saved) == ['meta', 'state_dict']


def test_another_folder(tmp_path):
    settings = dict(checkpoint=dict(out_dir=str(tmp_path / 'o')))
    train(tmp_path / 'w', stop=12, **settings)
    assert checkpoints(tmp_path / 'o' / 'w') == ['iter_5.pth', 'iter_10.pth']
    assert seen(train(tmp_path / 'w', resume=True, **settings)) == 96 - 30


@FileClient.register_backend('dictionary', prefixes='dictionary')
@register_backend('dictionary', prefixes='dictionary')
class DictionaryBackend(BaseStorageBackend):
    """Storage that is not local, as an object store is."""
    files = {}

    def put(self, obj, filepath):
        self.files[str(filepath)] = obj

    def get(self, filepath):
        return self.files[str(filepath)]

    def get_text(self, filepath):
        return self.get(filepath).decode()

    def join_path(self, *parts):
        return '/'.join(parts)

    def isfile(self, path):
        return path in self.files

    def remove(self, path):
        del self.files[path]


@pytest.mark.core
def test_storage_that_is_not_local_keeps_its_own_way(tmp_path):
    train(tmp_path / 'w', interval=20,
          checkpoint=dict(out_dir='dictionary://x', max_keep_ckpts=1))
    assert list(DictionaryBackend.files) == ['dictionary://x/w/iter_33.pth']


@pytest.mark.parametrize('save_last, saved', [
    (False, []), (True, ['iter_33.pth'])])
def test_the_best_and_the_last_alone(tmp_path, save_last, saved):
    train(tmp_path, interval=-1, val_evaluator=FALLING,
          checkpoint=dict(save_best='loss', save_last=save_last))
    assert checkpoints(tmp_path) == [*saved, 'best_loss_iter_33.pth']


def test_the_files_of_a_second_hook_are_resumed_from(tmp_path, whole):
    second = dict(type='AtomicCheckpointHook', interval=3, by_epoch=False,
                  filename_tmpl='second_{:03d}.pth', max_keep_ckpts=1)
    train(tmp_path, stop=7, hooks=[second])
    assert last(tmp_path) == 'second_006.pth'
    resumed = train(tmp_path, hooks=[second], resume=True)
    assert_same(whole, final_state(resumed))
    assert checkpoints(tmp_path)[-1] == 'second_033.pth'


def test_a_misspelt_argument_is_named_at_the_start(tmp_path):
    with pytest.raises(TypeError, match='max_keep_ckpt'):
        train(tmp_path, checkpoint=dict(max_keep_ckpt=3))


def changes(folder, **settings):
    """What a resume at iteration 10 says of settings that it ignores."""
    train(folder, stop=10)
    return [line for line in warned(folder, **settings)[0]
            if 'other settings than' in line]


def test_the_same_settings_are_not_named(tmp_path):
    assert changes(tmp_path) == []


@pytest.mark.parametrize('settings, named', [
    (dict(optim_wrapper=dict(
        optimizer=dict(type='Adam', lr=.5, betas=(.8, .999))),
        param_scheduler=[WARM_UP, dict(
            type='StepLR', step_size=2, gamma=.7, by_epoch=True)]),
     ['optimizer.lr goes on as 0.01, not as 0.5',
      'optimizer.betas goes on as (0.9, 0.999), not as (0.8, 0.999)',
      'param_scheduler[1].step_size goes on as 1, not as 2']),
    (dict(param_scheduler=[WARM_UP]),
     ['param_scheduler.number goes on as 2, not as 1'])])
def test_other_settings_are_named(tmp_path, settings, named):
    line, = changes(tmp_path, **settings)
    assert all(text in line for text in named) and 'load_from' in line
    assert line.count('goes on as') == len(named)


@pytest.mark.parametrize('settings, absent', [
    (dict(), 'no optimizer and no param_schedulers'),
    (dict(param_scheduler=None), 'no optimizer, ')])
def test_what_a_best_one_lacks_begins_anew(tmp_path, settings, absent):
    """It is not said that the checkpoint brings its own."""
    train(tmp_path, stop=12, checkpoint=dict(
        save_optimizer=False, save_param_scheduler=False))
    logged, _ = warned(tmp_path, load_from=str(tmp_path / 'iter_10.pth'),
                       **settings)
    assert not [line for line in logged if 'brings its own' in line]
    line, = [line for line in logged if 'begin anew' in line]
    assert absent in line
