"""Arguments and weights of another kind of ResNet name where they belong."""
import inspect

import pytest
import torch
from equality import undrawn
from mmengine.runner.checkpoint import load_state_dict

from stepnet_mm.hooks import LoadReportHook
from stepnet_mm.models.kinds import OWNERS

pytestmark = pytest.mark.core
SMALL = dict(depth=18, base_channels=8, stem_channels=8)
STEMS = dict(
    ResNet=dict(type='ResNet'),
    V1c=dict(type='ResNet', deep_stem=True),
    V1d=dict(type='ResNetV1d'),
    averaged=dict(type='ResNet', avg_down=True))


def build(models, **kwargs):
    return models.build({**SMALL, **kwargs})


@pytest.mark.parametrize('source, taker, named', [
    ('ResNet', 'StepResNetV1d', "'StepResNet'"),
    ('V1c', 'StepResNetV1d', 'V1C'),
    ('V1c', 'StepResNet', 'V1C'),
    ('V1d', 'StepResNet', r"\.StepResNetV1d'"),
    ('averaged', 'StepResNet', 'avg_down=True')])
def test_another_stem_names_its_type(models, tmp_path, source, taker, named):
    if named == 'V1C':
        named = dict(mmdet="'mmdet.StepResNet' with deep_stem=True",
                     mmpretrain="'mmpretrain.StepResNetV1c'")[models.scope]
    state = build(models, **STEMS[source]).state_dict()
    torch.save(state, tmp_path / 'a.pth')
    net = build(models, type=taker, init_cfg=dict(
        type='Pretrained', checkpoint=str(tmp_path / 'a.pth')))
    with pytest.raises(ValueError, match=f'weights of a {taker}.*{named}'):
        net.init_weights()


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_so_does_the_load_report(models, prefix):
    net = build(models, type='StepResNet')
    if prefix:
        net = torch.nn.ModuleDict(dict(backbone=net))
    state = build(models, type='ResNetV1d').state_dict()
    hook = LoadReportHook()
    with pytest.raises(ValueError, match='set the type '
                       f"'{models.scope}.StepResNetV1d'"):
        hook._on_load(None, '', net, {
            prefix + key: value for key, value in state.items()}, '')


@pytest.mark.parametrize('name', STEMS)
def test_the_right_weights_are_taken(models, name):
    stem = STEMS[name]
    state = build(models, **stem).state_dict()
    net = build(models, **dict(stem, type=f'Step{stem["type"]}'))
    load_state_dict(net, state)
    for key, value in state.items():
        assert torch.equal(net.state_dict()[key], value), key


@pytest.mark.parametrize('taker', ['StepResNet', 'StepResNetV1d'])
def test_a_deep_stem_of_the_other_library(taker):
    libraries = [pytest.importorskip(f'{name}.registry').MODELS
                 for name in ('mmdet', 'mmpretrain')]
    for models, other in (libraries, libraries[::-1]):
        state = build(other, type='ResNetV1d').state_dict()
        net = build(models, type=taker)
        with pytest.raises(ValueError, match=f"with {other.scope}'s stem.*"
                           f"'{other.scope}.StepResNetV1d'"):
            net.load_state_dict(state, strict=False)


@pytest.mark.parametrize('name', ['ResNet', 'V1d'])
def test_all_stages_come_with_their_stem(models, name):
    stem = STEMS[name]
    state = build(models, **stem).state_dict()
    net = build(models, **dict(stem, type=f'Step{stem["type"]}'))
    missing = [key for key in state if not key.startswith('layer')]
    assert len(missing) in (6, 18)
    for keys in (missing, *([key] for key in missing)):
        part = {key: state[key] for key in state if key not in keys}
        if 'num_batches_tracked' in keys[0]:
            net.load_state_dict(part, strict=False)
        else:
            with pytest.raises(ValueError, match=f'missing .*{keys[0]}'):
                net.load_state_dict(part, strict=False)


def test_a_stem_of_other_parts(models):
    net = build(models, type='StepResNetV1d')
    state = {**net.state_dict(), 'stem.9.weight': torch.ones(1)}
    with pytest.raises(ValueError, match="nothing, unused .'stem.9.weight'"):
        load_state_dict(net, state)


@pytest.mark.parametrize('name', ['ResNet', 'V1d'])
def test_what_may_lack_a_stem(models, name):
    """Some stages, a head's; norms of another kind; a bias of Caffe's."""
    stem = STEMS[name]
    state = build(models, **stem).state_dict()
    ours = dict(stem, type=f'Step{stem["type"]}')
    net = build(models, **ours)
    load_state_dict(net, {key: state[key] for key in state
                          if key.startswith(('layer1.', 'layer3.'))})
    load_state_dict(net, {'fc.weight': torch.ones(1)})
    load_state_dict(net, {**state, 'conv1.bias': torch.ones(8)})
    group = dict(norm_cfg=dict(type='GN', num_groups=4))
    load_state_dict(build(models, **ours, **group), state)
    load_state_dict(net, build(models, **stem, **group).state_dict())


def test_a_single_stage_shows_no_shortcut(models):
    one = dict(num_stages=1, strides=(1, ), dilations=(1, ), out_indices=(0, ))
    net = build(models, type='StepResNet', **one)
    load_state_dict(net, build(models, **STEMS['averaged']).state_dict())


def test_weights_of_no_resnet_are_not_judged(models):
    net = build(models, type='StepResNet')
    load_state_dict(net, {'stem.0.weight': torch.zeros(1)})


@pytest.mark.parametrize('key, owner', [
    ('layer1.0.se_layer.conv1.conv.weight', "SEResNet.*'SEAttention'"),
    ('layer3.1.conv2.fc1.weight', 'ResNeSt.*keep its own type'),
    ('layer1.0.convs.0.weight', 'Res2Net.*keep its own type'),
    ('layer2.0.conv2.switch.weight', 'DetectoRS_ResNet')])
def test_blocks_that_are_not_plain(models, key, owner):
    net = build(models, type='StepResNet')
    state = dict(net.state_dict(), **{key: torch.zeros(1)})
    with pytest.raises(ValueError, match=f'weights of a {owner}'):
        load_state_dict(net, state)


def test_the_keys_are_the_libraries_own(models):
    """Weights of their SEResNet, Res2Net and ResNeSt are told by a key."""
    net = build(models, type='StepResNet', depth=50)
    kinds = [name for name in ('SEResNet', 'Res2Net', 'ResNeSt',
                               'DetectoRS_ResNet') if models.get(name)]
    for kind in kinds:
        extra = dict(sac=dict(type='SAC', use_deform=False), stage_with_sac=(
            False, True, True, True)) if kind.startswith('Detecto') else {}
        with undrawn():
            source = models.build(dict(type=kind, depth=50, **extra))
        with pytest.raises(ValueError, match=f'weights of a {kind}'):
            load_state_dict(net, source.state_dict())
    assert len(kinds) >= 3


def test_cifar_stem():
    models = pytest.importorskip('mmpretrain.registry').MODELS
    state = build(models, type='ResNet_CIFAR').state_dict()
    net = build(models, type='StepResNet')
    with pytest.raises(ValueError, match="got .*3 x 3.*'StepResNet_CIFAR'"):
        load_state_dict(net, state)
    net = build(models, type='StepResNet_CIFAR')
    load_state_dict(net, state)
    with pytest.raises(ValueError, match="got some .*7 x 7.*'StepResNet'"):
        load_state_dict(net, build(models, type='ResNet').state_dict())


@pytest.mark.parametrize('wrong, match', [
    (dict(scales=4, base_width=26),
     'scales: expected .* of StepResNet, got one of Res2Net'),
    (dict(radix=2, groups=1), 'radix.*ResNeSt; its blocks are not plain'),
    (dict(reduction_factor=4), 'ResNeSt'),
    (dict(avg_down_stride=True), 'ResNeSt'),
    (dict(se_ratio=8), "SEResNet.*type='SEAttention'"),
    (dict(groups=32), "ResNeXt; set backbone.type='StepResNeXt'"),
    (dict(sac=dict(type='SAC')), 'DetectoRS_ResNet'),
    (dict(rfp_inplanes=256), 'DetectoRS_ResNet')])
def test_arguments_of_another_backbone(models, wrong, match):
    with pytest.raises(TypeError, match=match):
        build(models, type='StepResNet', **wrong)


def test_arguments_of_the_other_library(models):
    library = models.scope
    other, wrong = dict(
        mmdet=('mmpretrain', dict(groups=4, width_per_group=4)),
        mmpretrain=('mmdet', dict(groups=4, base_width=4)))[library]
    with pytest.raises(TypeError, match=f"{other}'s ResNeXt; .*{other}.Step"):
        build(models, type='StepResNeXt', **dict(wrong, depth=50))
    wrong = dict(mmdet=dict(drop_path_rate=.1), mmpretrain=dict(dcn=None))
    with pytest.raises(TypeError, match=f"{other}'s ResNet; .*{other}.Step"):
        build(models, type='StepResNet', **wrong[library])


def test_the_owners_have_the_arguments(models):
    """A library's backbone that an argument is said to be of takes it."""
    for name, owner in OWNERS.items():
        library, _, kind = owner.rpartition("'s ")
        cls = models.get(kind) if library in ('', models.scope) else None
        if cls is not None:
            assert name in inspect.signature(cls.__init__).parameters, name


def test_others_are_the_librarys_to_refuse(models):
    with pytest.raises(TypeError, match='foo'):
        build(models, type='StepResNet', foo=1)
