"""Configs that become StepNets; the texts of real ones are in the goldens."""
import os

import pytest
import torch
from equality import undrawn
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from stepnet_mm.config.conversion import Backbone, to_stepnet

pytest.importorskip('mmpretrain')

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
    text = to_stepnet(str(path), step=step, only=[teacher])
    assert 'teacher=dict(backbone' in text


@pytest.mark.parametrize('library, mode', [
    ('mmpretrain', dict(step_mode='gate')), ('mmseg', {})])
def test_each_vit_gets_its_own_settings(library, mode):
    pytest.importorskip(f'{library}.registry')
    vit = Backbone(('model', 'backbone'), dict(type='VisionTransformer'),
                   library)
    assert vit.changes(None) == dict(type='StepVisionTransformer', **mode)


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


#: A config's name or text -> a part of the message.
REFUSED = {
    'mmpretrain::shufflenet_v2/shufflenet-v2-1x_16xb64_in1k.py':
    'StepShuffleNetV2: expected residual blocks, got none',
    'mmpretrain::resnet/resnet18_8xb32_in1.py':
    'resnet/resnet18_8xb32_in1k.py',
    'mmnothing::atss/atss.py': "no package 'mmnothing' is installed",
    PLAIN.replace("'ResNet'", "'NoSuchNet'"): "no 'NoSuchNet' is registered",
    PLAIN.replace("'ResNet'", "'StepResNet'"): 'is a StepNet already',
    'import sys\nsys.exit(3)': 'expected a config, got SystemExit: 3'}


@pytest.mark.parametrize('config, text', REFUSED.items(),
                         ids=range(len(REFUSED)))
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
    (['--only', 'model.neck'], '--only'),
    (['--out', '{base}'], '--out: expected a new file')])
def test_the_tool_ends_in_one_line(tool, write, capsys, arguments, text):
    base = write('base.py', PLAIN)
    path = write('plain.py', "_base_ = 'base.py'")
    with pytest.raises(SystemExit):
        tool('to_stepnet', path, *(a.format(base=base) for a in arguments))
    assert text in capsys.readouterr().err.splitlines()[-1]
    assert base.read_text() == PLAIN
