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
    'train_cfg.max_epochs': 3, 'default_hooks.logger.interval': 1,
    'val_evaluator': [dict(type='Accuracy', topk=(1, )),
                      dict(type='TNSMetric')]}}
measure = dict(num_samples=10, ablate_steps=True)
'''


@pytest.mark.long
def test_stopped_in_the_middle(data, tmp_path, request):
    root = request.config.rootpath
    (tmp_path / 'real.py').write_text(STUDY.format(configs=root / 'configs'))
    study = read_study(tmp_path / 'real.py')

    def go(name, stop_after=None):
        run, = runs_of(study, tmp_path / name)
        runner = runner_of(root / 'tools', tmp_path / name, data_root=data)
        if stop_after:
            thread = once(lambda: iterations(run) >= stop_after, runner.stop,
                          seconds=120)
        assert runner.run([run]) == [], runner.said
        if stop_after:
            thread.join()
        return run, runner

    whole, runner = go('whole')
    expected, = recorded(runner).values()
    parts, runner = go('parts', stop_after=13)
    assert 'stopped (exit code 75)' in runner.said[-1]
    assert list(parts.folder.glob('preempted_iter_*.pth'))
    _, runner = go('parts')
    record, = recorded(runner).values()
    for key in ('epochs', 'last', 'best', 'stiffness', 'steps', 'config',
                'settings'):
        assert getattr(record, key) == getattr(expected, key), key
    assert len(record.epochs) == 3
    assert record.steps['trained'] == record.last
    assert 0 < record.steps['mean'] < 1 and record.steps['over_samples'] > 0
    weights = [torch.load(run.folder / 'epoch_3.pth', weights_only=False)
               for run in (whole, parts)]
    assert_same(weights[0]['state_dict'], weights[1]['state_dict'], 'weights')
    assert_same(weights[0]['optimizer'], weights[1]['optimizer'], 'optimizer')


def iterations(run):
    """How many it has logged."""
    return sum(path.read_text().count('"iter"')
               for path in run.folder.glob('*/vis_data/scalars.json'))
