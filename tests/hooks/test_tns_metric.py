import pytest
import torch
from mmengine.evaluator import BaseMetric
from mmengine.registry import METRICS
from toy_run import VALIDATION, ToyDataset, hook_count, scalars, toy_runner

from stepnet_mm.hooks import TNSMetric
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import summarize_stiffness

SETTINGS = dict(
    VALIDATION, val_evaluator=dict(type='TNSMetric', by_block=True),
    test_dataloader=VALIDATION['val_dataloader'], test_cfg=dict(),
    test_evaluator=dict(type='TNSMetric'))


def runner_of(tmp_path, hooks=('TNSMetricHook', ), **kwargs):
    return toy_runner(tmp_path, [dict(type=hook) for hook in hooks], 5,
                      **{**SETTINGS, **kwargs})


def by_hand(model):
    model.eval()
    images = torch.stack([ToyDataset()[i]['inputs'] for i in range(16)])
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        for batch in images.split(4):
            model.backbone(batch)
    return recorder


@pytest.mark.core
@pytest.mark.parametrize('loop', ['val', 'test'])
def test_it_measures_the_evaluated_samples(tmp_path, loop):
    runner = runner_of(tmp_path)
    metrics = getattr(runner, loop)()
    recorder = by_hand(runner.model)
    expected = summarize_stiffness(
        recorder.nsi, recorder.stage,
        recorder.blocks if loop == 'val' else ())
    if loop == 'val':  # by_block
        expected.update({f'step/{name}': step for name, step in zip(
            recorder.blocks, recorder.step.double().nanmean(0).tolist())})
    assert metrics == {f'stiffness_eval/{k}': v for k, v in expected.items()}
    assert metrics['stiffness_eval/tns'] > 0
    assert hook_count(runner.model) == 0
    assert f'{loop}_step' not in vars(runner.model)


@METRICS.register_module()
class LateMetric(BaseMetric):
    """As mmdet's: no number where nothing was detected; then a better one."""
    default_prefix = 'coco'

    def __init__(self):
        super().__init__()
        self.times = 0

    def process(self, data_batch, data_samples):
        self.results += data_samples

    def compute_metrics(self, results):
        self.times += 1
        return dict(bbox_mAP=self.times) if self.times > 1 else {}


@pytest.mark.parametrize('kind, save_best, rule, best', [
    ('Atomic', 'auto', None, 'coco_bbox_mAP_iter_4'),
    ('', 'here/tns', 'less', 'here_tns_iter_')])
def test_a_best_checkpoint(tmp_path, kind, save_best, rule, best):
    """It is chosen by the other metric, unless save_best names TNS."""
    runner_of(
        tmp_path, val_evaluator=[
            dict(type='TNSMetric', prefix='here'),
            dict(type='TNSMetric', definition='output'),
            dict(type='LateMetric')],
        train_cfg=dict(by_epoch=False, max_iters=4, val_interval=2),
        default_hooks=dict(checkpoint=dict(
            type=f'{kind}CheckpointHook', interval=5, by_epoch=False,
            save_best=save_best, rule=rule))).train()
    path, = tmp_path.glob('best_*')
    assert path.stem.startswith(f'best_{best}')
    row = scalars(tmp_path, 'scalars')[-1]
    assert 0 < row['here/tns'] != row['stiffness_eval/tns'] > 0


def test_without_its_hook_it_says_which_one(tmp_path):
    with pytest.raises(ValueError, match="dict\\(type='TNSMetricHook'\\)"):
        runner_of(tmp_path, hooks=()).val()


def test_step_sizes_of_samples_that_are_not_finite_do_not_count(tmp_path):
    metric = TNSMetric(by_block=True)
    runner = runner_of(tmp_path)
    metric.attach(runner.model, 'val_step')
    rows = torch.ones(3, 2, len(metric.recorder.blocks))
    rows[1, :, 2] = torch.inf
    rows[1, 1, :2] = 7.
    found = metric.compute_metrics([*rows.numpy()])
    assert found['nonfinite'] == 1
    steps = [v for key, v in found.items() if key.startswith('step/')]
    assert steps == [1.] * len(metric.recorder.blocks)


def test_no_hook_is_left_when_the_evaluation_raises(tmp_path):
    runner = runner_of(tmp_path, val_evaluator=[
        dict(type='TNSMetric'), dict(type='TNSMetric', prefix='other')])
    layer = runner.model.backbone.layer2[1].conv2
    layer.forward = None
    with pytest.raises(TypeError):
        runner.val()
    assert hook_count(runner.model) == 0
    del layer.forward
    metrics = runner.val()
    assert metrics['stiffness_eval/tns'] == metrics['other/tns']
    assert 'val_step' not in vars(runner.model)
