import pytest
import torch
from mmengine.model import BaseModel
from ranks import results_of_ranks
from resume_run import assert_same, warnings_of
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, default_collate
from torchvision.models.resnet import BasicBlock, ResNet
from toy_run import DDP, VALIDATION, hook_count, scalars, toy_runner

from stepnet_mm.hooks import TNSHook
from stepnet_mm.stiffness import DEFINITIONS

HOOKS = dict(
    batch=dict(type='TNSHook', interval=2),
    probe=dict(type='TNSHook', interval=2, probe=dict(num_samples=6),
               name='probe'))


def runner_of(folder, hooks, iterations=8, **settings):
    """A training that validates."""
    return toy_runner(folder, hooks, iterations, **{**VALIDATION, **settings})


@pytest.mark.core
def test_the_log_and_all_back_ends_get_the_numbers(tmp_path):
    from tensorboard.backend.event_processing import event_accumulator
    late = dict(
        type='TNSHook', interval=8, name='late', definition='output',
        blocks=r'backbone\.layer2\.\d')
    toy_runner(tmp_path, [HOOKS['batch'], late], log_level='INFO').train()
    path, = tmp_path.glob('*/vis_data')
    rows = scalars(tmp_path)
    assert [row['step'] for row in rows] == [2, 4, 6, 8]
    assert rows[0]['stiffness/tns'] != rows[1]['stiffness/tns']
    assert not any('stiffness' in key
                   for row in scalars(tmp_path, 'scalars') for key in row)
    recorded = event_accumulator.EventAccumulator(
        str(path)).Reload().Scalars('stiffness/tns')
    assert [(event.step, event.value) for event in recorded] == [
        (row['step'], pytest.approx(row['stiffness/tns'])) for row in rows]
    log, = tmp_path.glob('*/*.log')
    lines = [line for line in log.read_text().splitlines() if 'tns: ' in line]
    assert len(lines) == 4 + 1 and '[4/8]' in lines[1]
    assert 'nsi_stage2_max: ' in lines[0] and 'nonfinite: 0' in lines[0]
    row, = scalars(tmp_path, 'late')
    assert {key for key in row if key.startswith('late/nsi/')} == {
        f'late/nsi/backbone.layer2.{i}' for i in range(1, 4)}


class Plain(BaseModel):
    """As in mmengine's tutorial: a network, images and labels."""

    def __init__(self):
        super().__init__()
        self.net = ResNet(BasicBlock, [2] * 4, num_classes=3)

    def forward(self, images, labels, mode):
        x = self.net(images)
        return {'loss': dict(loss=cross_entropy(x, labels)),
                'predict': (x, labels)}.get(mode)


def plain_runner(folder, collate=None, **kwargs):
    data = TensorDataset(torch.randn(4, 3, 16, 16), torch.tensor([0, 1] * 2))
    loader = DataLoader(data, 2, collate_fn=collate)
    hooks = [dict(type='TNSHook', interval=1, probe=kwargs),
             dict(type='TNSMetricHook')]
    return runner_of(
        folder, hooks, model=Plain(), train_dataloader=loader,
        val_dataloader=loader, val_evaluator=dict(type='TNSMetric'),
        train_cfg=dict(by_epoch=False, max_iters=2, val_interval=2))


@pytest.mark.parametrize('collate', [
    None, lambda rows: dict(zip(('images', 'labels'), default_collate(rows)))],
    ids=['list', 'dict'])
def test_batches_of_a_plain_loader(tmp_path, collate):
    plain_runner(tmp_path, collate).train()
    assert [row['step'] for row in scalars(tmp_path)] == [1, 2]
    assert 'stiffness_eval/tns' in scalars(tmp_path, 'scalars')[-1]


def test_a_probe_that_the_model_does_not_take(tmp_path):
    images = DataLoader(torch.randn(2, 3, 32, 32), collate_fn=lambda rows: [
        torch.stack(rows)])
    with pytest.raises(ValueError, match=(
            r'^custom_hooks\.TNSHook\.probe: .*TypeError.*labels')):
        plain_runner(tmp_path, dataloader=images).train()


def test_a_backbone_that_was_not_called_is_logged_as_a_warning(tmp_path):
    runner, hook = toy_runner(tmp_path, [], 1), TNSHook(interval=1)
    said = warnings_of(runner)
    runner.train_loop.dataloader = None
    hook.before_train_iter(runner, 0)
    hook.after_train_iter(runner, 0)
    assert 'was not called' in said[0]


def test_hooks_left_by_an_exception_go_at_the_next_iteration(tmp_path):
    runner = toy_runner(tmp_path, [])
    hook = TNSHook(interval=1)
    hook.before_train_iter(runner, 0)
    hook.interval = 1000
    hook.before_train_iter(runner, 1)
    assert 'train_step' not in vars(runner.model)


@pytest.mark.parametrize('hooks, match, settings', [
    # Modules that work in place, which the first forward shows.
    *(([dict(HOOKS[name], interval=1000,
             blocks=r'backbone\.layer\d\.\d\.relu')],
       r'relu: expected .* in place', {}) for name in HOOKS),
    ([dict(HOOKS['batch'], by_epoch=True)], r'TNSHook\.by_epoch', {}),
    ([HOOKS['probe']], 'val_dataloader', dict(
        val_dataloader=None, val_cfg=None, val_evaluator=None)),
    ([HOOKS['batch']] * 2, r'TNSHook\.name', {})])
def test_it_fails_before_training(tmp_path, hooks, match, settings):
    runner = runner_of(tmp_path, hooks, **settings)
    with pytest.raises(ValueError, match=match):
        runner.train()
    assert runner.iter == 0
    assert hook_count(runner.model) == 0


def test_a_compiled_train_step_may_have_a_probe_alone(tmp_path):
    runner = runner_of(tmp_path, HOOKS.values())
    runner.cfg.compile = True
    batch, probe = (h for h in runner.hooks if isinstance(h, TNSHook))
    probe.before_train(runner)
    with pytest.raises(ValueError, match='compile=False'):
        batch.before_train(runner)


@pytest.mark.core
def test_training_is_bit_identical_with_all_hooks(tmp_path):
    """Several on the same iterations, which leave nothing behind."""
    plain = runner_of(tmp_path / 'plain', [], 6).train()
    runner = runner_of(
        tmp_path / 'watched', [
            *HOOKS.values(), dict(type='TNSMetricHook'),
            *(dict(type='TNSHook', interval=3, definition=key, name=key)
              for key in DEFINITIONS)],
        6, val_evaluator=dict(type='TNSMetric'))
    assert_same(plain.state_dict(), runner.train().state_dict())
    assert 'train_step' not in vars(runner.model)
    assert hook_count(runner.model) == 0
    first, second = (
        {key.partition('/')[2]: value
         for key, value in scalars(tmp_path / 'watched', name)[-1].items()}
        for name in ('stiffness', 'residual'))
    assert first == second


def test_by_epoch(tmp_path):
    hooks = [dict(hook, by_epoch=True) for hook in HOOKS.values()]
    runner = runner_of(
        tmp_path, hooks, train_cfg=dict(by_epoch=True, max_epochs=5),
        log_processor=dict(by_epoch=True),
        train_dataloader=dict(VALIDATION['val_dataloader'], batch_size=8))
    runner.train()
    for name in ('stiffness', 'probe'):
        assert [row['step'] for row in scalars(tmp_path, name)] == [4, 8]


@pytest.mark.parametrize('key, wrong', [
    ('interval', 0), ('name', 'a/b'), ('probe', dict(samples=3))])
def test_wrong_arguments(key, wrong):
    with pytest.raises(ValueError, match=rf'TNSHook\.{key}'):
        TNSHook(**{key: wrong})


@pytest.mark.core
def test_two_processes_under_ddp(tmp_path):

    def train(rank):
        runner = runner_of(
            tmp_path, [*HOOKS.values(), dict(type='TNSMetricHook')], 4,
            val_evaluator=dict(type='TNSMetric'), **DDP)
        said = []
        runner.logger.info = said.append
        runner.train()
        assert type(runner.model).__name__ == 'MMDistributedDataParallel'
        assert hook_count(runner.model.module) == 0
        numbers = [line for line in said
                   if line.startswith('Iter(train)') and 'tns: ' in line]
        assert len(numbers) == 4  # two measurements of two hooks
        return numbers, runner.val()

    first, second = results_of_ranks(train)
    assert first == second
    assert first[1]['stiffness_eval/tns'] > 0
