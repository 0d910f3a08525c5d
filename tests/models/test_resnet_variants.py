"""Weights of another variant of ResNet are a warning that names it."""
import pytest
import torch
from equality import BOTH, undrawn
from mmengine.runner.checkpoint import load_state_dict

SMALL = dict(depth=18, base_channels=8, stem_channels=8)
STEMS = dict(
    ResNet=dict(type='ResNet'),
    V1c=dict(type='ResNet', deep_stem=True),
    V1d=dict(type='ResNetV1d'),
    averaged=dict(type='ResNet', avg_down=True))
PLAIN, DEEP = 'no deep stem', 'deep stem of'


def build(models, **kwargs):
    return models.build({**SMALL, **kwargs})


def weights(models, stem, **kwargs):
    return build(models, **STEMS[stem], **kwargs).state_dict()


@pytest.mark.core
@BOTH
@pytest.mark.parametrize('source, taker, named', [
    ('ResNet', 'StepResNetV1d', f'{PLAIN}.*no averaged'),
    ('V1c', 'StepResNetV1d', 'no averaged'),
    ('V1d', 'StepResNet', f'{DEEP} MODELS.*avg_down'),
    ('averaged', 'StepResNet', 'avg_down=True')])
def test_another_variant_is_named(models, source, taker, named):
    net = build(models, type=taker)
    named = named.replace('MODELS', models.scope)
    with pytest.warns(UserWarning, match=f'{taker}.*{named}'):
        load_state_dict(net, weights(models, source))


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
    net = build(models, type='StepResNet', depth=50)
    kinds = [name for name in ('SEResNet', 'Res2Net', 'ResNeSt',
                               'DetectoRS_ResNet') if models.get(name)]
    for kind in kinds:
        extra = dict(sac=dict(type='SAC', use_deform=False), stage_with_sac=(
            False, True, True, True)) if kind.startswith('Detecto') else {}
        with undrawn():
            source = models.build(dict(type=kind, depth=50, **extra))
        with pytest.warns(UserWarning, match=f'StepResNet.*{kind}: '):
            load_state_dict(net, source.state_dict())
    assert len(kinds) == 3
