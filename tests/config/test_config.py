import copy

import pytest
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import HOOKS, LOOPS, TRANSFORMS
from torch.utils.data import IterableDataset

from stepnet_mm import config
from stepnet_mm.config.lookup import later_pipelines


def dataset(split):
    return dict(
        type='CocoDataset', data_root='data/coco/',
        ann_file=f'annotations/{split}.json', pipeline=[
            dict(type='LoadImageFromFile', backend_args=None),
            dict(type='Resize', scale=(1333, 800), keep_ratio=True)])


@pytest.fixture
def cfg():
    return Config(dict(
        default_scope='mmdet', train_dataloader=dict(dataset=dict(
            type='RepeatDataset', dataset=dataset('train'))),
        val_dataloader=dict(dataset=dataset('val')),
        test_dataloader=dict(dataset=dataset('val')),
        test_evaluator=[dict(ann_file='data/coco/annotations/val.json')],
        optim_wrapper=dict(type='OptimWrapper')))


def dumped_and_read(cfg, folder, **kwargs):
    cfg.dump(folder / 'my_config.py')
    return config.read_config(str(folder / 'my_config.py'), **kwargs)


def pipelines(cfg):
    return [cfg.train_dataloader.dataset.dataset.pipeline,
            cfg.val_dataloader.dataset.pipeline,
            cfg.test_dataloader.dataset.pipeline]


def test_a_config_is_as_its_file_has_it(cfg, tmp_path):
    expected = {**cfg.to_dict(), 'launcher': 'none',
                'work_dir': 'work_dirs/my_config'}
    assert dumped_and_read(cfg, tmp_path).to_dict() == expected
    options = {'optim_wrapper': dict(lr=1, _delete_=True),
               'default_scope': 'other'}
    for _ in range(2):  # options may be used again
        own = dumped_and_read(cfg, tmp_path, options=options)
        assert (own.optim_wrapper, own.default_scope) == (dict(lr=1), 'other')


@pytest.mark.core
@pytest.mark.parametrize('whose', ['text', 'mmcv', 'user'])
def test_broken_images_are_skipped_in_training_only(cfg, monkeypatch, whose):
    """But for a user's class of that name, and where all are needed."""
    from mmcv.transforms import LoadImageFromFile
    loading = [pipeline[0] for pipeline in pipelines(cfg)]
    if whose == 'mmcv':
        loading[0].type = LoadImageFromFile
    if whose == 'user':
        TRANSFORMS.get('LoadImageFromFile')
        monkeypatch.setitem(TRANSFORMS.module_dict, 'LoadImageFromFile',
                            type('LoadImageFromFile', (), {}))
    several = dict(type='LoadImageFromFile')
    pipelines(cfg)[0].append(
        dict(type='TransformBroadcaster', transforms=[several]))
    config.use_intact_images(cfg)
    assert several == dict(type='LoadImageFromFile')
    assert [t.type for t in loading] == [
        'LoadImageFromFile' if whose == 'user' else 'LoadIntactImageFromFile',
        'LoadImageFromFile', 'LoadImageFromFile']


def test_loaders_get_their_librarys_defaults(cfg, tmp_path):
    cfg.default_scope = 'mmpretrain'
    cfg.val_dataloader.collate_fn = dict(type='own')
    for name in ('train_dataloader', 'val_dataloader'):
        cfg[name].update(num_workers=2)
        cfg[name].pop('persistent_workers', None)
    cfg = dumped_and_read(
        cfg, tmp_path, options={'train_dataloader.num_workers': 0})
    train, val = cfg.train_dataloader, cfg.val_dataloader
    assert (train.collate_fn.type, val.collate_fn.type) == (
        'default_collate', 'own')
    assert (train.persistent_workers, val.persistent_workers) == (False, True)


@pytest.mark.core
def test_the_data_root_leaves_lazy_objects_to_their_config(
        tmp_path, monkeypatch):
    """What a ConfigDict gives by items() is built, and cannot be written."""
    path = tmp_path / 'config.py'
    path.write_text('''
from mmengine.evaluator import DumpResults
from torch.utils.data import DataLoader
train_dataloader = dict(dataset=dict(type=DataLoader, data_root='data'))
val_evaluator = dict(type=DumpResults, out_file_path='data/a.pkl')
''')
    cfg = Config.fromfile(str(path), lazy_import=True)
    monkeypatch.setenv('HOME', '/home/me')
    config.set_data_root(cfg, '~/there')
    assert cfg.val_evaluator.out_file_path == '/home/me/there/a.pkl'
    assert "type='mmengine.evaluator." in cfg.pretty_text


def test_the_data_root_moves_datasets_and_paths_of_evaluators(cfg):
    cfg.val_dataloader.dataset.data_root = 'data/coco/extra'
    cfg.val_evaluator = dict(type='Several', metrics=[
        dict(ann_file=['data/coco/a.json', 'data/coco/extra/b.json'],
             seg_prefix='data/coco/panoptic', metric=['bbox'], num=3),
        dict(ann_file='data/coco2/a.json', outfile_prefix='work_dirs/a')])
    cfg.model = dict(prototype=dict(dataset=dict(data_root='data/coco')))
    config.set_data_root(cfg, '/there')
    assert cfg.train_dataloader.dataset.dataset.data_root == '/there'
    assert cfg.test_dataloader.dataset.data_root == '/there'
    assert cfg.model.prototype.dataset.data_root == '/there'
    assert cfg.test_evaluator[0].ann_file == '/there/annotations/val.json'
    assert [dict(metric) for metric in cfg.val_evaluator.metrics] == [
        dict(ann_file=['/there/a.json', '/there/b.json'],
             seg_prefix='/there/panoptic', metric=['bbox'], num=3),
        dict(ann_file='data/coco2/a.json', outfile_prefix='work_dirs/a')]


@pytest.mark.parametrize('key', ['switch_pipeline', 'train_pipeline'])
def test_all_pipelines_are_scaled_and_skip_broken_images(cfg, key):
    """Those too to which a hook of mmdet or of mmpretrain switches."""
    cfg.custom_hooks = [dict(type='TNSHook'), dict(
        type='Switch', schedule=[{key: dataset('train')['pipeline']}])]
    resize = cfg.train_dataloader.dataset.dataset.pipeline[1]
    resize.update(type='RandomChoiceResize', scales=[(1333, 640), (1333, 800)])
    del resize['scale']
    config.set_image_scale(cfg, [320, 200])
    config.use_intact_images(cfg)
    later = next(pipeline for _, pipeline in later_pipelines(cfg))
    assert later[0].type == 'LoadIntactImageFromFile'
    assert resize.scales == [(320, 200)] and 'scale' not in resize
    assert [p[1].scale for p in (*pipelines(cfg)[1:], later)] == [
        (320, 200)] * 3
    del later[1]
    with pytest.raises(ValueError, match=r'custom_hooks\.1: '):
        config.set_image_scale(cfg, [320, 200])


@pytest.mark.parametrize('option, arguments, change, match', [
    (config.set_data_root, ['/there'], dict.fromkeys(
        ('train_dataloader', 'val_dataloader', 'test_dataloader')),
     '--data-root'),
    (config.set_image_scale, [(1, 1)],
     dict(val_dataloader=dict(dataset=dict(type='A'))),
     '--image-scale: .* val_dataloader'),
    (config.use_amp, [], dict(optim_wrapper=dict(type='Other')),
     '--amp.*Other'),
    (config.use_auto_scale_lr, [], {}, 'auto_scale_lr.base_batch_size')])
def test_options_without_a_place_are_errors(cfg, option, arguments, change,
                                            match):
    for key, value in change.items():
        cfg[key] = value
    with pytest.raises(ValueError, match=match):
        option(cfg, *arguments)


def test_amp_and_auto_scale_lr(cfg):
    cfg.auto_scale_lr = dict(base_batch_size=16, enable=False)
    config.use_auto_scale_lr(cfg)
    assert cfg.auto_scale_lr.enable
    for kind in 'OptimWrapper', OptimWrapper:
        cfg.optim_wrapper = dict(type=kind)
        config.use_amp(cfg)
        assert cfg.optim_wrapper == dict(
            type='AmpOptimWrapper', loss_scale='dynamic')


@pytest.mark.parametrize('given, kind', [
    (dict(by_epoch=True, max_epochs=2), 'ResumableEpochBasedTrainLoop'),
    (dict(by_epoch=False, max_iters=2), 'ResumableIterBasedTrainLoop'),
    (dict(type='mmengine.IterBasedTrainLoop'), 'ResumableIterBasedTrainLoop'),
    (dict(type='ResumableIterBasedTrainLoop'), 'ResumableIterBasedTrainLoop'),
])
def test_loops_become_resumable(cfg, given, kind):
    cfg.train_cfg = given
    config.use_exact_resume(cfg)
    assert cfg.train_cfg == {'type': kind, **{
        key: value for key, value in given.items() if key.startswith('max_')}}
    # mmengine's default, where the config has none.
    assert cfg.default_hooks.checkpoint == dict(
        type='AtomicCheckpointHook', interval=1)


def test_every_checkpoint_hook_becomes_atomic_and_keeps_its_arguments(cfg):
    """And hooks of ours that are there stay as they are."""
    cfg.train_cfg = dict(by_epoch=True, max_epochs=2)
    cfg.default_hooks = dict(
        checkpoint=dict(type='CheckpointHook', interval=3, save_best='auto'),
        second=dict(type='CheckpointHook', out_dir='elsewhere'))
    cfg.custom_hooks = [dict(type='CheckpointHook'),
                        dict(type='PreemptionHook', max_requeues=3)]
    config.use_exact_resume(cfg)
    kind = 'AtomicCheckpointHook'
    assert cfg.default_hooks == dict(
        checkpoint=dict(type=kind, interval=3, save_best='auto'),
        second=dict(type=kind, interval=-1, out_dir='elsewhere'))
    assert cfg.custom_hooks == [
        dict(type=kind, interval=-1),
        dict(type='PreemptionHook', max_requeues=3),
        dict(type='NonFiniteLossHook')]


def test_the_library_of_a_config_without_a_scope(cfg):
    from mmengine.model import BaseModel
    from mmpretrain.models import ImageClassifier
    own = type('Own', (ImageClassifier, ), dict(__module__='my'))
    cfg.pop('default_scope', None)
    for kind, library in [
            (own, 'mmpretrain'), ('mmdet.FasterRCNN', 'mmdet'),
            ('FasterRCNN', None), (BaseModel, None), (None, None)]:
        cfg.model = dict(type=kind)
        assert config.library_of(cfg) == library
    cfg.default_scope = 'mmdet'
    assert config.library_of(cfg) == 'mmdet'


@pytest.mark.parametrize('changes, said', [
    (dict(default_hooks=dict(checkpoint=None)),
     'default_hooks.checkpoint is None'),
    (dict(runner_type='FlexibleRunner'), 'runner_type is FlexibleRunner'),
    (dict(train_dataloader=dict(dataset=dict(
        type=type('Stream', (IterableDataset, ), {})))),
     'train_dataloader.dataset has no indices'),
    # Registered under mmengine's name.
    (dict(default_hooks=dict(checkpoint=dict(type='CheckpointHook'))),
     f'default_hooks.checkpoint is {__name__}.CheckpointHook'),
    (dict(train_cfg=dict(type='EpochBasedTrainLoop')),
     f'train_cfg.type is {__name__}.EpochBasedTrainLoop')])
def test_what_is_the_users_own_stays(cfg, monkeypatch, changes, said):
    *_, name = said.split('.')
    for registry in (HOOKS, LOOPS) if __name__ in said else ():
        monkeypatch.setitem(registry.module_dict, name, type(name, (), {}))
    cfg.train_cfg = dict(by_epoch=True, max_epochs=2)
    for key, value in changes.items():
        cfg[key] = value
    before = cfg.to_dict()
    line, = config.use_exact_resume(cfg)
    assert line.startswith(said)
    assert cfg.to_dict() == before


def test_each_substitution_is_a_line(cfg):
    cfg.train_cfg = dict(by_epoch=True, max_epochs=2)
    cfg.default_hooks = dict(
        checkpoint=dict(type='CheckpointHook', by_epoch=True))
    cfg.val_evaluator = dict(type='TNSMetric')
    cfg.custom_imports = dict(imports=None)
    other = copy.deepcopy(cfg)
    lines = config.add_resume_and_hooks(cfg)
    assert [line.split()[1:3] for line in lines] == [
        ['train_dataloader:', 'LoadIntactImageFromFile'],
        ['custom_imports:', 'stepnet_mm'],
        ['custom_hooks:', 'BrokenImageHook'],
        ['custom_hooks:', 'TNSMetricHook'],
        ['default_hooks:', 'AtomicCheckpointHook'],
        ['train_cfg:', 'ResumableEpochBasedTrainLoop'],
        ['custom_hooks:', 'PreemptionHook'],
        ['custom_hooks:', 'NonFiniteLossHook']]
    assert config.add_resume_and_hooks(cfg) == []  # all is there
    other.exact_resume = False  # loop and hook stay mmengine's
    config.add_resume_and_hooks(other)
    assert other.train_cfg == dict(by_epoch=True, max_epochs=2)
    assert other.default_hooks.checkpoint.type == 'CheckpointHook'


@pytest.mark.parametrize('path, hook, last, expected', [
    ('auto', 'AtomicCheckpointHook', False,
     dict(load_from='w', resume=True, auto_resume=True)),
    ('auto', 'CheckpointHook', False, dict(load_from='w', resume=False)),
    ('auto', 'CheckpointHook', True, dict(load_from=None, resume=True)),
    ('x.pth', 'AtomicCheckpointHook', False,
     dict(load_from='x.pth', resume=True))])
@pytest.mark.parametrize('before', [{}, dict(resume=True, auto_resume=True)])
def test_what_is_resumed(path, hook, last, expected, before, tmp_path):
    """``before``: in the config that an earlier training wrote."""
    cfg = Config(dict(load_from='w', work_dir=str(tmp_path), **before,
                      default_hooks=dict(checkpoint=dict(type=hook))))
    if last:
        (tmp_path / 'last_checkpoint').write_text('epoch_1.pth')
    config.use_resume(cfg, path)
    got = cfg.to_dict()
    del got['default_hooks'], got['work_dir']
    assert got == expected


def test_tta_with_a_pipeline_of_its_own_needs_no_other(cfg):
    cfg.merge_from_dict(dict(model=dict(type='RetinaNet')))
    plain = copy.deepcopy(cfg)
    cfg.tta_pipeline = [dict(type='LoadImageFromFile')]
    cfg.test_dataloader.dataset.pop('pipeline')
    config.use_tta(cfg)
    assert cfg.test_dataloader.dataset.pipeline == cfg.tta_pipeline
    plain.default_scope = 'mmseg'
    with pytest.raises(ValueError, match='--tta: expected tta_model and tta'):
        config.use_tta(plain)


def test_a_librarys_config_whose_crops_are_scaled():
    with pytest.raises(ValueError, match='resnet/resnet34_8xb32_in1k.py'):
        config.read_config('mmpretrain::resnet/resnet34_8xb32_in1.py')
    cfg = config.read_config('mmpretrain::resnet/resnet34_8xb32_in1k.py')
    assert cfg.work_dir == 'work_dirs/resnet34_8xb32_in1k'
    for _ in range(2):  # the second changes nothing
        config.set_image_scale(cfg, (96, 64))
        _, edge, crop, _ = cfg.val_dataloader.dataset.pipeline
        assert (edge.scale, crop.crop_size) == (73, 64)
        assert cfg.train_dataloader.dataset.pipeline[1].scale == 64
