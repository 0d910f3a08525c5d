"""A study that was stopped in the middle ends as one that was not."""
import pytest
import torch
from made_study import once, recorded, runner_of
from resume_run import assert_same

from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.study import read_study

STUDY = '''
methods = dict(stepnet=dict(
    config='{configs}/resnet164/resnet164_stepnet_cifar10.py'))
options = {{
    'model.backbone.depth': 20, 'train_dataloader.batch_size': 4,
    'train_dataloader.num_workers': 0, 'val_dataloader.num_workers': 0,
    'train_cfg.max_epochs': 2, 'default_hooks.logger.interval': 1,
    'val_evaluator': [dict(type='Accuracy', topk=(1, )),
                      dict(type='TNSMetric')]}}
'''
MEASURE = 'measure = dict(num_samples=10, ablate_steps=True)'
#: A training is compared; its measurement follows from its weights.
NONE = 'measure = dict(num_samples=10, definitions=[])'


@pytest.mark.long
def test_stopped_in_the_middle(data, tmp_path, request):
    root = request.config.rootpath

    def go(name, measure, stop_after=None):
        (tmp_path / 'real.py').write_text(
            STUDY.format(configs=root / 'configs') + measure)
        run, = runs_of(read_study(tmp_path / 'real.py'), tmp_path / name)
        runner = runner_of(root / 'tools', tmp_path / name, data_root=data)
        if stop_after:
            thread = once(lambda: iterations(run) >= stop_after, runner.stop,
                          seconds=120)
        assert runner.run([run]) == [], runner.said
        if stop_after:
            thread.join()
        return run, runner

    whole, runner = go('whole', NONE)
    expected, = recorded(runner).values()
    parts, runner = go('parts', MEASURE, stop_after=13)
    assert 'stopped (exit code 75)' in runner.said[-1]
    assert list(parts.folder.glob('preempted_iter_*.pth'))
    _, runner = go('parts', MEASURE)
    record, = recorded(runner).values()
    for key in ('epochs', 'last', 'best', 'config'):
        assert getattr(record, key) == getattr(expected, key), key
    assert len(record.epochs) == 2
    assert record.stiffness['residual']['samples'] == 10
    assert record.steps['trained'] == record.last
    assert 0 < record.steps['mean'] < 1 and record.steps['over_samples'] > 0
    weights = [torch.load(run.folder / 'epoch_2.pth', weights_only=False)
               for run in (whole, parts)]
    assert_same(weights[0]['state_dict'], weights[1]['state_dict'], 'weights')
    assert_same(weights[0]['optimizer'], weights[1]['optimizer'], 'optimizer')


def iterations(run):
    """How many it has logged."""
    return sum(path.read_text().count('"iter"')
               for path in run.folder.glob('*/vis_data/scalars.json'))
