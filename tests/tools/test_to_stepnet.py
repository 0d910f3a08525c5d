"""Configs that become StepNets; the texts of real ones are in the goldens."""
import os

import pytest
import torch
from equality import undrawn
from mini_coco import make_mini_coco
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from stepnet_mm.config.conversion import Backbone, to_stepnet
from stepnet_mm.config.own_data import find_data
from stepnet_mm.launch.entry import build_loader

PLAIN = '''
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8,
                  frozen_stages=1),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=64))
'''
PYTHONIC = '''
default_scope = 'mmpretrain'
from mmpretrain.models import (GlobalAveragePooling, ImageClassifier,
                               LinearClsHead, ResNet)

model = dict(
    type=ImageClassifier,
    backbone=dict(type=ResNet, depth=18, base_channels=8, stem_channels=8),
    neck=dict(type=GlobalAveragePooling),
    head=dict(type=LinearClsHead, num_classes=3, in_channels=64))
'''


@pytest.fixture
def write(tmp_path):
    """write('a/b.py', text) -> its path"""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def build(cfg):
    with undrawn(), DefaultScope.overwrite_default_scope(
            cfg.get('default_scope') or 'mmengine'):
        return MODELS.build(cfg.model).eval()


def test_a_config_may_have_any_name(write):
    text = to_stepnet(str(write(os.fsdecode(b'\xe9\nb.py'), PLAIN)))
    compile(text.encode(), 'text', 'exec')


def test_a_teacher_gets_no_untrained_steps(write):
    path = write('two.py', """
default_scope = 'mmpretrain'
model = dict(backbone=dict(type='ResNet', depth=18),
             teacher=dict(backbone=dict(type='ResNet', depth=34)))
""")
    teacher = 'model.teacher.backbone'
    for step in (None, dict(type='SumStepAdaptor')):
        assert 'teacher=dict(backbone' in to_stepnet(str(path), step=step)
    step = dict(type='StepAdaptor', init_step=.5)
    text = to_stepnet(str(path), step=step)
    assert text.count('Step') > 1 and 'teacher=' not in text
    assert f'# {teacher} stays: a teacher, which' in text


def test_a_vit_of_mmseg_has_no_gates():
    """As mmpretrain's has, in the goldens."""
    pytest.importorskip('mmseg.registry')
    vit = Backbone(('model', 'backbone'), dict(type='VisionTransformer'),
                   'mmseg')
    assert vit.changes(None) == dict(type='StepVisionTransformer')


BEFORE = 'custom_imports = dict(imports={}, allow_failed_imports=True)'


@pytest.mark.parametrize('config, part, there', [
    (PLAIN.replace("= 'mmpretrain'", "= 'mmengine'").replace(
        "'ResNet'", "'mmpretrain.ResNet'"), "'mmpretrain.StepResNet'", True),
    (PLAIN.replace("'ResNet'", "'mmpretrain.models.backbones.resnet.ResNet'"),
     "'mmpretrain.StepResNet'", True),
    (PLAIN + BEFORE.format("'json'"), BEFORE.format(['json', 'stepnet_mm']),
     True),
    (PLAIN + BEFORE.format(['stepnet_mm']), 'custom_imports', False)],
    ids=range(4))
def test_types_and_imports(write, config, part, there):
    assert (part in to_stepnet(str(write('a.py', config)))) == there


def test_steps_that_cannot_start_at_1_are_not_frozen(write):
    path = str(write('plain.py', PLAIN))
    for step, stays in ((None, True), (dict(type='SoftmaxStepAdaptor'), True),
                        (dict(type='StepAdaptor', init_step=.5), False),
                        (dict(type='SEAttention', reduction=8), False)):
        text = to_stepnet(path, step=step)
        assert ('frozen_stages=0' in text) != stays
        assert ('steps start at 1' in text) == stays


@pytest.mark.core
def test_pure_python_configs(write):
    path = write('pythonic.py', PYTHONIC)
    text = to_stepnet(str(path), step=dict(type='ECAAttention'))
    assert "type='mmpretrain.StepResNet'" in text
    cfg = Config.fromfile(write('stepnet.py', text))
    model = build(cfg)
    assert len(model.backbone.steps()) == 8
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 3)
    # What a checkpoint keeps of it is read again as text.
    again = Config.fromstring(cfg.pretty_text, '.py')
    assert again.custom_imports.imports == ['stepnet_mm']
    assert type(build(again)) is type(model)


@pytest.mark.parametrize('config, text', [
    ('mmpretrain::shufflenet_v2/shufflenet-v2-1x_16xb64_in1k.py',
     'StepShuffleNetV2: expected residual blocks, got none'),
    ('mmpretrain::resnet/resnet18_8xb32_in1.py',
     'resnet/resnet18_8xb32_in1k.py'),
    ('mmnothing::atss/atss.py', "no package 'mmnothing' is installed"),
    (PLAIN.replace("'ResNet'", "'NoSuchNet'"), "no 'NoSuchNet' is registered"),
    (PLAIN.replace("'ResNet'", "'StepResNet'"), 'is a StepNet already'),
    ('import sys\nsys.exit(3)', 'expected a config, got SystemExit: 3')],
    ids=range(6))
def test_a_config_without_a_stepnet(config, text, write):
    name = config if '::' in config else str(write('config.py', config))
    with pytest.raises(ValueError, match=f'(?s){text}'):
        to_stepnet(name)


def test_the_tool(printed, write, tmp_path):
    path, out = write('own+these/plain.py', PLAIN), tmp_path / 'new/se.py'
    assert printed('to_stepnet', path) == to_stepnet(str(path))
    printed('to_stepnet', path, '--step', 'SEAttention', '--step-options',
            'reduction=8', '--out', out)
    assert f"_base_ = '{tmp_path}" not in out.read_text()
    backbone = build(Config.fromfile(out)).backbone
    assert backbone.steps()[0].excitation[0].out_features == 1


@pytest.mark.parametrize('arguments, text', [
    (['--step', 'SEAttention', '--step-options', 'ratio=8'], "'ratio'"),
    (['--step-options', 'reduction=8'], 'expected a --step beside it'),
    (['--out', '{base}'], '--out: expected a new file')])
def test_the_tool_ends_in_one_line(tool, write, capsys, arguments, text):
    base = write('base.py', PLAIN)
    path = write('plain.py', "_base_ = 'base.py'")
    with pytest.raises(SystemExit):
        tool('to_stepnet', path, *(a.format(base=base) for a in arguments))
    assert text in capsys.readouterr().err.splitlines()[-1]
    assert base.read_text() == PLAIN


def own(write, folder, name, **kwargs):
    """The config NAME for the data in a folder."""
    text = to_stepnet(name, data=find_data(folder), **kwargs)
    return Config.fromfile(write('own.py', text))


def counts_of(cfg):
    return [len(build_loader(cfg, name).dataset) for name in ('train', 'val')]


DETECTOR = 'mmdet::cascade_rcnn/cascade-rcnn_r50_fpn_1x_coco.py'
CLASSIFIER = 'mmpretrain::resnet/resnet50_8xb256-rsb-a1-600e_in1k.py'


def test_own_coco_and_voc_files(write, voc, tmp_path):
    coco = tmp_path / '我的 shapes'
    make_mini_coco(coco, train=9, val=5, size=64)
    for folder, kind, classes, counts in (
            (coco, 'CocoMetric', ('circle', 'square', 'triangle'), [8, 5]),
            (voc, 'VOCMetric', ('cat', 'dog'), [1, 1])):
        cfg = own(write, folder, DETECTOR, scale=(60, 48))
        assert [head.num_classes for head in cfg.model.roi_head.bbox_head
                ] == [len(classes)] * 3
        assert cfg.val_evaluator.type == kind
        assert cfg.train_dataloader.dataset.metainfo.classes == classes
        assert counts_of(cfg) == counts
        sample = build_loader(cfg, 'val').dataset[0]
        assert len(sample['data_samples'].gt_instances)
        assert sample['inputs'].shape[2] in (48, 60)
        assert cfg.model.backbone.type == 'StepResNet'
        assert [hook.type for hook in cfg.custom_hooks
                ] == ['TNSHook', 'LoadReportHook']


@pytest.mark.parametrize('plain', [False, True])
def test_no_tns_of_first_blocks_alone(write, tmp_path, plain):
    make_mini_coco(tmp_path / 'coco', train=2, val=1, size=64)
    cfg = own(write, tmp_path / 'coco',
              'mmdet::rtmdet/rtmdet_tiny_8xb32-300e_coco.py', plain=plain)
    hooks = [hook.type for hook in cfg.custom_hooks]
    assert 'LoadReportHook' in hooks and 'TNSHook' not in hooks


@pytest.mark.parametrize('splits, counts', [
    ([''], [8, 3]), (['train', 'validation'], [11, 11])])
def test_own_folders_of_classes(write, draw_folders, tmp_path, splits, counts):
    folder = draw_folders(tmp_path / 'my pets', *splits, cat=4, dog=7)
    cfg = own(write, folder, CLASSIFIER, plain=True, scale=(40, 32))
    assert cfg.model.backbone.type == 'ResNet'
    assert (cfg.model.head.num_classes, cfg.data_preprocessor.num_classes,
            cfg.val_evaluator.topk) == (2, 2, (1, ))
    assert counts_of(cfg) == counts
    found = [build_loader(cfg, name).dataset for name in ('train', 'val')]
    assert {data[0]['inputs'].shape for data in found} == {(3, 32, 32)}
    files = [{row['img_path'] for row in map(data.get_data_info, range(
        len(data)))} for data in found]
    assert not files[0] & files[1]
    assert find_data(folder).splits['val'].counts == {
        name: sum(f'/{name}/' in path for path in files[1])
        for name in ('cat', 'dog')}


def test_own_data_for_a_stepnet(write, draw_folders, classifier, tmp_path):
    folder = draw_folders(tmp_path / 'data', '', cat=4, dog=7, owl=4)
    cfg = own(write, folder, str(classifier))
    assert cfg.model.backbone.type == 'StepResNet'
    assert cfg.model.head.num_classes == 3 and len(cfg.custom_hooks) == 2


@pytest.mark.parametrize('name, splits, others, words', [
    (DETECTOR, ('train', 'val'), {}, 'a config of mmpretrain'),
    (CLASSIFIER, ('train', ), {}, 'train, and val or test'),
    (CLASSIFIER, ('train', 'val'), dict(bird=1), 'the same classes'),
    ('mmpretrain::resnet/resnet18_8xb16_cifar10.py', ('train', 'val'), {},
     'a pipeline that loads images')])
def test_own_data_that_do_not_fit(write, draw_folders, tmp_path, name, splits,
                                  others, words):
    folder = draw_folders(tmp_path / 'data', *splits, cat=4, dog=7)
    draw_folders(folder, 'val', **others)
    with pytest.raises(ValueError, match=words):
        own(write, folder, name)


def test_odd_data_are_said(write, tmp_path, capsys, tool):
    make_mini_coco(tmp_path / 'coco', train=3, val=3, size=64)
    min((tmp_path / 'coco/train2017').iterdir()).unlink()
    tool('to_stepnet', DETECTOR, '--data', tmp_path / 'coco', '--out',
         tmp_path / 'own.py')
    said = capsys.readouterr().err
    assert 'train: 3 images' in said and 'not there: 1, such as' in said
    with pytest.raises(ValueError, match='expected COCO files'):
        find_data(tmp_path / 'nothing')
