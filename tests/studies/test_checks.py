"""What is wrong is said before anything runs."""
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mmengine.registry import MODELS

from stepnet_mm.studies.checks import check_runs
from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.slots import gpu_environments, threads_of_each
from stepnet_mm.studies.study import read_study


@pytest.fixture
def runs(tmp_path, request):
    """runs(**options): of a ResNet-20, with these options."""
    pytest.importorskip('mmpretrain')
    config = (request.config.rootpath
              / 'configs/resnet164/resnet164_plain_cifar10.py')

    def runs(**options):
        options = {'model.backbone.depth': 20,
                   **{k.replace('__', '.'): v for k, v in options.items()}}
        (tmp_path / 'made.py').write_text(
            f'methods = dict(own=dict(config={str(config)!r}, '
            f'options={options!r}))')
        return runs_of(read_study(tmp_path / 'made.py'), tmp_path / 'runs')

    return runs


def test_nothing_is_wrong(runs, data):
    check_runs(runs(), data)


@pytest.mark.long
def test_modules_that_options_import(runs, data, tmp_path, monkeypatch):
    (tmp_path / 'own_step.py').write_text(
        'from mmengine.registry import MODELS\n'
        'from stepnet_mm.steps import ConstantStep\n\n\n'
        '@MODELS.register_module()\n'
        'class OwnStep(ConstantStep):\n'
        '    pass\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        check_runs(
            runs(model__backbone__step=dict(type='OwnStep', _delete_=True),
                 custom_imports__imports=['stepnet_mm', 'own_step']),
            data)
    finally:
        MODELS.module_dict.pop('OwnStep', None)
        sys.modules.pop('own_step', None)


@pytest.mark.long
@pytest.mark.parametrize('options, key', [
    (dict(model__backbone__dept=20), 'dept'),
    (dict(model__backbone__step=dict(type='Nothing')), 'Nothing')])
def test_a_model_that_cannot_be_built(runs, data, options, key):
    with pytest.raises(ValueError, match=f'methods.own: .*{key}'):
        check_runs(runs(**options), data)


@pytest.mark.long
@pytest.mark.parametrize('damage', ['absent', 'its parent', 'an image'])
def test_data_that_cannot_be_read(runs, data, damage, monkeypatch):
    monkeypatch.setattr('urllib.request.urlopen', None)  # nothing is fetched
    root = dict(absent=f'{data}/none').get(damage, data)
    if damage == 'its parent':
        root = str(Path(data).parent)
    elif damage == 'an image':
        next(Path(data).glob('test/*/*.png')).write_bytes(b'')
    with pytest.raises(ValueError, match='methods.own: .*data'):
        check_runs(runs(), root)


def test_a_config_that_evaluates_nothing(runs, data):
    with pytest.raises(ValueError, match=(
            'methods.own: .*val_dataloader')):
        check_runs(runs(val_dataloader=None), data)


def test_a_dataset_that_takes_no_download(runs, data):
    datasets = pytest.importorskip('mmpretrain.registry').DATASETS
    base = datasets.get('BaseDataset')

    @datasets.register_module()
    class CIFARLike(base):

        def load_data_list(self):
            return [dict(img_path='a', gt_label=0)]

    dataset = dict(type='CIFARLike', data_root=data, ann_file='',
                   _delete_=True)
    try:
        check_runs(runs(train_dataloader__dataset=dataset,
                        val_dataloader__dataset=dataset), None)
    finally:
        datasets.module_dict.pop('CIFARLike')


def beside(own, name, **options):
    """The run of another method, which differs by these options."""
    return replace(own, method=replace(
        own.method, name=name, options={**own.method.options, **options}))


def test_the_same_data_are_read_once(runs, data, monkeypatch):
    read = []
    monkeypatch.setattr(
        'stepnet_mm.studies.checks.build_loader',
        lambda cfg, split: read.append(split))
    own, = runs()
    check_runs([own, beside(own, 'other')], data)
    assert read == ['train', 'val']


@pytest.mark.long
def test_data_of_every_method_are_looked_at(runs, data):
    own, = runs()
    other = beside(own, 'other', **{'val_dataloader.dataset.split': 'gone'})
    with pytest.raises(ValueError, match='methods.other: .*gone'):
        check_runs([own, other], data)


@pytest.mark.parametrize('count, visible, names', [
    (0, None, None), (2, None, ['0', '1']),
    (2, 'GPU-a, GPU-b', ['GPU-a', 'GPU-b']), (1, '3,-1', ['3'])])
def test_one_gpu_for_each_environment(monkeypatch, count, visible, names):
    monkeypatch.setattr('torch.cuda.device_count', lambda: count)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    assert gpu_environments() == (
        [dict(CUDA_VISIBLE_DEVICES=name) for name in names] if names
        else [{}])


@pytest.mark.parametrize('asked, each', [
    ('4', [4, 2, 1]), ('64', [8, 2, 1]), ('', [8, 2, 1]), ('4,2', [8, 2, 1])])
def test_threads_are_shared_and_no_more_than_asked_for(
        monkeypatch, asked, each):
    monkeypatch.setattr('os.sched_getaffinity', lambda _: range(8))
    monkeypatch.setenv('OMP_NUM_THREADS', asked)
    assert [threads_of_each(jobs) for jobs in (1, 3, 20)] == each


def test_evaluations_without_their_iteration(runs, data):
    found = runs(train_cfg=dict(
        type='IterBasedTrainLoop', max_iters=3, _delete_=True))
    with pytest.raises(ValueError, match='logger.log_metric_by_epoch'):
        check_runs(found, data)
