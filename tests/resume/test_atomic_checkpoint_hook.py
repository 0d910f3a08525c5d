import os
import re

import pytest
import torch
from mmengine.config import Config
from mmengine.fileio import BaseStorageBackend, FileClient, register_backend
from mmengine.optim import OptimWrapper, OptimWrapperDict
from resume_run import Stopped, assert_same, final_state, resume_runner

from stepnet_mm.resume import AtomicCheckpointHook, AtomicLocalBackend
from stepnet_mm.resume.training_state import accumulating

TEST = dict(
    test_dataloader=dict(
        dataset=dict(type='AugmentedDataset', size=6),
        sampler=dict(type='DefaultSampler', shuffle=False),
        batch_size=2),
    test_cfg=dict(),
    test_evaluator=dict(type='RandomMetric'))


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


def damaged(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.core
def test_as_many_are_kept_as_asked_for(tmp_path):
    train(tmp_path)
    assert checkpoints(tmp_path) == ['iter_30.pth', 'iter_33.pth']
    assert last(tmp_path) == 'iter_33.pth'


def test_the_old_one_goes_when_the_new_one_is_complete(
        tmp_path, monkeypatch):
    there = []

    class Watching(AtomicLocalBackend):

        def put(self, obj, filepath):
            there.append(checkpoints(tmp_path))
            super().put(obj, filepath)

    monkeypatch.setitem(
        __import__('mmengine.fileio.backends.registry_utils',
                   fromlist=['backends']).backends, 'atomic_local', Watching)
    train(tmp_path, checkpoint=dict(max_keep_ckpts=1))
    assert there
    assert all(len(names) == 1 for names in there[1:])


def test_killed_before_the_old_one_is_deleted(tmp_path, monkeypatch):
    """The resumed run makes up for it."""

    def killed(self, filename):
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(AtomicCheckpointHook, '_delete', killed)
        with pytest.raises(Stopped):
            train(tmp_path)
    assert checkpoints(tmp_path) == [f'iter_{n}.pth' for n in (5, 10, 15)]
    train(tmp_path, stop=1, resume=True)
    assert checkpoints(tmp_path) == ['iter_10.pth', 'iter_15.pth']


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


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """The end of a run that nothing disturbed."""
    return final_state(train(tmp_path_factory.mktemp('whole')))


def warnings_of(runner):
    lines = []
    runner.logger.warning = lines.append
    return lines


@pytest.mark.core
def test_a_damaged_one_is_named_and_the_one_before_taken(tmp_path, whole):
    train(tmp_path, stop=12)
    damaged(tmp_path / 'iter_10.pth')
    runner = resume_runner(tmp_path, interval=5, resume=True)
    logged = warnings_of(runner)
    runner.train()
    assert len([line for line in logged
                if re.search(r'iter_10\.pth is damaged', line)]) == 1
    assert_same(whole, final_state(runner))


def test_none_is_whole(tmp_path):
    train(tmp_path, stop=12)
    for name in checkpoints(tmp_path):
        damaged(tmp_path / name)
    with pytest.raises(ValueError, match=r'expected a whole checkpoint in .*'
                       r'iter_10.*iter_5'):
        train(tmp_path, resume=True)


def test_a_folder_with_brackets(tmp_path):
    folder = tmp_path / 'run[lr=0.1]'
    train(folder, stop=12)
    (folder / 'last_checkpoint').unlink()
    (folder / 'iter_15.pth.unfinished').write_bytes(b'')
    (folder / 'my.unfinished').mkdir()
    runner = train(folder, resume=True)
    assert len(runner.train_dataloader.dataset.loaded) == 96 - 30
    assert [path.name for path in folder.glob('*.unfinished')] == [
        'my.unfinished']


def test_a_pointer_that_is_garbage_and_no_checkpoint(tmp_path):
    (tmp_path / 'last_checkpoint').write_bytes(b'\xff')
    assert train(tmp_path, resume=True).iter == 33


def test_a_path_that_is_given_is_taken_as_it_is(tmp_path):
    train(tmp_path, stop=12)
    path = str(tmp_path / 'iter_5.pth')
    runner = resume_runner(tmp_path, interval=5, resume=True, load_from=path)
    with_it = warnings_of(runner)
    runner.train()
    assert not with_it
    assert len(runner.train_dataloader.dataset.loaded) == 96 - 15


def test_a_path_that_is_given_and_damaged(tmp_path):
    train(tmp_path, stop=12)
    damaged(tmp_path / 'iter_5.pth')
    with pytest.raises(ValueError,
                       match=r'--resume: .*iter_5\.pth, which is damaged: '):
        train(tmp_path, resume=True, load_from=str(tmp_path / 'iter_5.pth'))


def test_weights_to_start_from_are_no_resume(tmp_path):
    train(tmp_path / 'a', stop=12)
    runner = train(tmp_path / 'b', load_from=str(tmp_path / 'a/iter_10.pth'))
    assert len(runner.train_dataloader.dataset.loaded) == 96


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
    loaded = torch.load(weights, weights_only=False)['state_dict']
    assert all(torch.equal(loaded[k], v)
               for k, v in first.model.state_dict().items())
    assert first.iter == 0
    train(tmp_path / 'b', stop=12, **settings)
    again = train(tmp_path / 'b', **settings)
    assert len(again.train_dataloader.dataset.loaded) == 96 - 30


def test_several_optimizers(tmp_path):
    """GANs step each of theirs themselves."""
    parts = {name: build_optim(name) for name in ('a', 'b')}
    wrapper = OptimWrapperDict(**parts)
    assert not accumulating(wrapper)
    parts['b']._accumulative_counts, parts['b']._inner_count = 3, 2
    assert accumulating(wrapper)


def build_optim(name):
    parameter = torch.nn.Parameter(torch.zeros(1))
    return OptimWrapper(torch.optim.SGD([parameter], lr=.1))


@pytest.mark.core
def test_the_best_one_goes_when_the_better_one_is_complete(
        tmp_path, monkeypatch):
    there = []
    save = AtomicLocalBackend.put

    def put(self, obj, filepath):
        there.append([n for n in checkpoints(tmp_path) if n[:4] == 'best'])
        save(self, obj, filepath)

    monkeypatch.setattr(AtomicLocalBackend, 'put', put)
    runner = train(
        tmp_path,
        checkpoint=dict(save_best='loss', rule='less'),
        val_evaluator=dict(type='FallingMetric'))
    best, = [n for n in checkpoints(tmp_path) if n[:4] == 'best']
    assert best == 'best_loss_iter_33.pth'
    first = next(i for i, names in enumerate(there) if names)
    assert all(names for names in there[first:])
    hook, = [h for h in runner.hooks if isinstance(h, AtomicCheckpointHook)]
    assert hook.best_ckpt_path == str(tmp_path / best)
    saved = torch.load(tmp_path / best, weights_only=False)
    assert 'optimizer' not in saved and 'training_state' not in saved


@pytest.mark.parametrize('names', ['loss', ['loss', 'acc']])
def test_the_best_one_of_another_run_stays(tmp_path, names):
    settings = dict(
        checkpoint=dict(save_best=names, rule='less',
                        published_keys=['state_dict']),
        val_evaluator=dict(type='FallingMetric'))
    train(tmp_path / 'a', stop=13, **settings)
    before = checkpoints(tmp_path / 'a')
    assert 'best_loss_iter_11.pth' in before
    train(tmp_path / 'b', resume=True,
          load_from=str(tmp_path / 'a/iter_11.pth'), **settings)
    assert checkpoints(tmp_path / 'a') == before


def test_the_best_one_is_found_in_a_folder_that_was_moved(tmp_path):
    settings = dict(
        checkpoint=dict(save_best='loss', rule='less'),
        val_evaluator=dict(type='FallingMetric'))
    train(tmp_path / 'a', stop=13, **settings)
    (tmp_path / 'a').rename(tmp_path / 'b')
    (tmp_path / 'b/last_checkpoint').write_text(
        str(tmp_path / 'b/iter_11.pth'))
    train(tmp_path / 'b', resume=True, **settings)
    assert [n for n in checkpoints(tmp_path / 'b') if n[:4] == 'best'] == [
        'best_loss_iter_33.pth'
    ]


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


def test_several_best_ones(tmp_path):
    train(
        tmp_path,
        interval=20,
        checkpoint=dict(save_best=['loss', 'acc'], rule=['less', 'greater']),
        val_evaluator=dict(type='FallingMetric'))
    assert [n for n in checkpoints(tmp_path) if n[:4] == 'best'] == [
        'best_acc_iter_33.pth', 'best_loss_iter_33.pth'
    ]


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
    runner = train(tmp_path / 'w', resume=True, **settings)
    assert len(runner.train_dataloader.dataset.loaded) == 96 - 30


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


def test_a_full_disk_names_the_file_and_loses_nothing(tmp_path, monkeypatch):
    put = AtomicLocalBackend.put

    def full(self, obj, filepath):
        if 'iter_10' in str(filepath):
            with monkeypatch.context() as patch:
                patch.setattr(os, 'fsync', lambda _: (_ for _ in ()).throw(
                    OSError(28, 'No space left on device')))
                return put(self, obj, filepath)
        return put(self, obj, filepath)

    monkeypatch.setattr(AtomicLocalBackend, 'put', full)
    with pytest.raises(OSError, match='iter_10.pth: .*got No space'):
        train(tmp_path, checkpoint=dict(max_keep_ckpts=1))
    assert checkpoints(tmp_path) == ['iter_5.pth']
    assert last(tmp_path) == 'iter_5.pth'


def test_the_best_alone_is_saved(tmp_path):
    train(tmp_path, interval=-1, checkpoint=dict(
        save_best='loss', rule='less', save_last=False))
    name, = checkpoints(tmp_path)
    assert name.startswith('best_loss_iter_')
@pytest.mark.parametrize('kind', ['CheckpointHook', 'AtomicCheckpointHook'])
def test_the_last_and_the_best_alone(tmp_path, kind):
    train(tmp_path, interval=-1, val_evaluator=dict(type='FallingMetric'),
          checkpoint=dict(type=kind, save_best='loss'))
    assert checkpoints(tmp_path) == ['iter_33.pth', 'best_loss_iter_33.pth']


def test_the_files_of_a_second_hook_are_resumed_from(tmp_path):
    second = dict(type='AtomicCheckpointHook', interval=3, by_epoch=False,
                  filename_tmpl='second_{:03d}.pth', max_keep_ckpts=1)
    whole = train(tmp_path / 'whole', hooks=[second])
    train(tmp_path / 'b', stop=7, interval=5, hooks=[second])
    assert last(tmp_path / 'b') == 'second_006.pth'
    resumed = train(tmp_path / 'b', hooks=[second], resume=True)
    assert_same(final_state(whole), final_state(resumed))
    assert checkpoints(tmp_path / 'b')[-1] == 'second_033.pth'


def test_a_misspelt_argument_is_named_at_the_start(tmp_path):
    runner = resume_runner(tmp_path, checkpoint=dict(max_keep_ckpt=3))
    with pytest.raises(TypeError, match="'max_keep_ckpt'; 'max_keep_ckpts'"):
        runner.train()
    assert not runner.iter


def changes(folder, **kwargs):
    """What a resume at iteration 10 says of settings that it ignores."""
    train(folder, stop=10)
    runner = resume_runner(folder, interval=5, resume=True, **kwargs)
    logged = warnings_of(runner)
    runner.train()
    return [line for line in logged if 'other settings than' in line]


def test_the_same_settings_are_not_named(tmp_path):
    assert changes(tmp_path) == []


def test_other_settings_are_named(tmp_path):
    warm_up = dict(type='LinearLR', start_factor=.1, end=20, by_epoch=False)
    line, = changes(
        tmp_path,
        optim_wrapper=dict(
            optimizer=dict(type='Adam', lr=.5, betas=(.8, .999))),
        param_scheduler=[warm_up, dict(
            type='StepLR', step_size=2, gamma=.7, by_epoch=True)])
    assert 'optimizer.lr goes on as 0.01, not as 0.5' in line
    assert 'optimizer.betas goes on as (0.9, 0.999), not as (0.8' in line
    assert 'param_scheduler[1].step_size goes on as 1, not as 2' in line
    assert line.count('goes on as') == 3 and 'load_from' in line


@pytest.mark.parametrize('settings, absent', [
    (dict(), 'no optimizer and no param_schedulers'),
    (dict(param_scheduler=None), 'no optimizer, '),
    (dict(checkpoint=dict(save_best='loss', rule='less')), None)])
def test_what_a_best_one_lacks_begins_anew(tmp_path, settings, absent):
    """It is not said that the checkpoint brings its own."""
    train(tmp_path, stop=12, checkpoint=dict(
        save_optimizer=absent is None, save_param_scheduler=absent is None))
    runner = resume_runner(
        tmp_path, interval=5, resume=True,
        load_from=str(tmp_path / 'iter_10.pth'), **settings)
    logged = warnings_of(runner)
    runner.train()
    assert not [line for line in logged if 'brings its own' in line]
    assert [absent in line for line in logged
            if 'begin anew' in line] == [True] * (absent is not None)


def test_a_schedule_less_is_named(tmp_path):
    line, = changes(tmp_path, param_scheduler=[
        dict(type='LinearLR', start_factor=.1, end=20, by_epoch=False)])
    assert 'the number of param_scheduler goes on as 2, not as 1' in line
