"""Arguments and weights of another variant of ResNet name it."""
import inspect
import sys

import pytest
import torch
from equality import BOTH, undrawn
from mmengine.runner.checkpoint import load_state_dict

from stepnet_mm.models.resnet_variants import OWNERS

SMALL = dict(depth=18, base_channels=8, stem_channels=8)
STEMS = dict(
    ResNet=dict(type='ResNet'),
    V1c=dict(type='ResNet', deep_stem=True),
    V1d=dict(type='ResNetV1d'),
    averaged=dict(type='ResNet', avg_down=True))


def build(models, **kwargs):
    return models.build({**SMALL, **kwargs})


def weights(models, stem, **kwargs):
    return build(models, **STEMS[stem], **kwargs).state_dict()


@BOTH
@pytest.mark.parametrize('source, taker, named', [
    ('ResNet', 'StepResNetV1d', "'StepResNet'"),
    ('V1c', 'StepResNetV1d', 'V1C'),
    ('V1d', 'StepResNet', r"\.StepResNetV1d'"),
    ('averaged', 'StepResNet', 'avg_down=True')])
def test_another_stem_names_its_type(models, source, taker, named):
    if named == 'V1C':
        named = dict(mmdet="'mmdet.StepResNet' with deep_stem=True",
                     mmpretrain="'mmpretrain.StepResNetV1c'")[models.scope]
    net = build(models, type=taker)
    with pytest.warns(UserWarning, match=f'{taker}.*{named}'):
        load_state_dict(net, weights(models, source))


def test_a_deep_stem_of_the_other_library():
    libraries = [pytest.importorskip(f'{name}.registry').MODELS
                 for name in ('mmdet', 'mmpretrain')]
    for models, other in (libraries, libraries[::-1]):
        net = build(models, type='StepResNetV1d')
        with pytest.warns(UserWarning, match=f"'{other.scope}.StepResNetV1d'"):
            net.load_state_dict(weights(other, 'V1d'), strict=False)


@pytest.mark.filterwarnings('error')
def test_weights_that_fit_or_show_no_variant(models):
    """A head's; norms of another kind; a bias of Caffe's; one stage."""
    state = weights(models, 'ResNet')
    net = build(models, type='StepResNet')
    load_state_dict(net, {'fc.weight': torch.ones(1)})
    load_state_dict(net, {'stem.0.weight': torch.zeros(1)})
    load_state_dict(net, {**state, 'conv1.bias': torch.ones(8)})
    group = dict(norm_cfg=dict(type='GN', num_groups=4))
    load_state_dict(build(models, type='StepResNet', **group), state)
    load_state_dict(net, weights(models, 'ResNet', **group))
    # A single stage shows no averaged shortcut.
    one = dict(num_stages=1, strides=(1, ), dilations=(1, ), out_indices=(0, ))
    net = build(models, type='StepResNet', **one)
    load_state_dict(net, weights(models, 'averaged'))


@pytest.mark.core
@BOTH
def test_blocks_that_are_not_plain(models):
    """Weights of the libraries' own networks are told by a key."""
    net = build(models, type='StepResNet', depth=50)
    kinds = [name for name in ('SEResNet', 'Res2Net', 'ResNeSt',
                               'DetectoRS_ResNet') if models.get(name)]
    for kind in kinds:
        extra = dict(sac=dict(type='SAC', use_deform=False), stage_with_sac=(
            False, True, True, True)) if kind.startswith('Detecto') else {}
        with undrawn():
            source = models.build(dict(type=kind, depth=50, **extra))
        with pytest.warns(UserWarning, match=f'weights of a {kind}'):
            load_state_dict(net, source.state_dict())
    assert len(kinds) == 3


def test_cifar_stem(models):
    state = build(models, type='ResNet_CIFAR').state_dict()
    with pytest.warns(UserWarning, match="3 x 3.*'StepResNet_CIFAR'"):
        load_state_dict(build(models, type='StepResNet'), state)
    net = build(models, type='StepResNet_CIFAR')
    load_state_dict(net, state)
    with pytest.warns(UserWarning, match="7 x 7.*'StepResNet'"):
        load_state_dict(net, weights(models, 'ResNet'))


@pytest.mark.parametrize('library, kind, wrong, match', [
    ('mmpretrain', 'ResNet', dict(radix=2, groups=1), 'radix.*ResNeSt'),
    ('mmpretrain', 'ResNet', dict(se_ratio=8),
     "SEResNet.*type='SEAttention'"),
    ('mmpretrain', 'ResNet', dict(groups=32),
     "ResNeXt.*backbone.type='StepResNeXt'"),
    ('mmpretrain', 'ResNet', dict(foo=1), 'foo'),  # the library's to refuse
    ('mmpretrain', 'ResNet', dict(dcn=None), "mmdet's.*mmdet.StepResNet"),
    ('mmpretrain', 'ResNeXt', dict(groups=4, base_width=4),
     "mmdet's.*mmdet.StepResNeXt"),
    ('mmdet', 'ResNet', dict(drop_path_rate=.1),
     "mmpretrain's.*mmpretrain.StepResNet"),
    ('mmdet', 'ResNeXt', dict(groups=4, width_per_group=4),
     "mmpretrain's.*mmpretrain.StepResNeXt"),
    ('mmdet', 'ResNet', dict(contract_dilation=True), 'mmseg.StepResNet')])
def test_arguments_of_another_backbone(library, kind, wrong, match):
    models = pytest.importorskip(f'{library}.registry').MODELS
    with pytest.raises(TypeError, match=match):
        build(models, type=f'Step{kind}', depth=50, **wrong)


@pytest.mark.core
@BOTH
def test_the_owners_have_the_arguments(models):
    """A library's backbone that an argument is said to be of takes it."""
    for name, owner in OWNERS.items():
        library, _, kind = owner.rpartition("'s ")
        cls = models.get(kind) if library in ('', models.scope) else None
        if cls is not None:
            assert name in inspect.signature(cls.__init__).parameters, name


def test_a_backbone_comes_from_the_one_library_that_has_it(monkeypatch):
    pytest.importorskip('mmdet')
    pytest.importorskip('mmpretrain')
    from stepnet_mm.models import StepResNetV1c, mmpretrain_binding
    assert StepResNetV1c is mmpretrain_binding.StepResNetV1c
    with pytest.raises(ImportError, match='mmdet_binding or .*mmpretrain_b'):
        from stepnet_mm.models import StepResNet
    with pytest.raises(ImportError, match="cannot import name 'StepNothing'"):
        from stepnet_mm.models import StepNothing  # noqa: F401  not there
    monkeypatch.setitem(
        sys.modules, 'stepnet_mm.models.mmdet_binding', None)
    from stepnet_mm.models import StepResNet
    assert StepResNet is mmpretrain_binding.StepResNet
