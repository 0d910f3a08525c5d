"""Weights of steps with other arguments name the ``step`` that fits them."""

import pytest
import torch
from mmengine.runner.checkpoint import load_state_dict

SMALL = dict(depth=18, base_channels=8, stem_channels=8)
K3 = dict(type='ECAAttention', kernel_size=3)
K5 = dict(type='ECAAttention', kernel_size=5)


def build(models, step, **kwargs):
    return models.build(dict(type='StepResNet', step=step, **SMALL, **kwargs))


def by_stage(*kernels):
    return [dict(type='ECAAttention', kernel_size=k) for k in kernels]


def asked(excinfo):
    """The ``step`` that a message names."""
    text = str(excinfo.value).partition('; set step=')[2]
    return eval(text.removesuffix(', or load other weights'))


def test_kernels_of_three_in_a_network_of_five(models):
    net = torch.nn.ModuleDict(dict(backbone=build(models, K5)))
    state = torch.nn.ModuleDict(
        dict(backbone=build(models, K3))).state_dict()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    with pytest.raises(ValueError, match=r'^backbone\.step: .*kernel_size=5'
                       r'.*kernel_size=3 \(layer1\.0\.step\)') as error:
        net.load_state_dict(state, strict=False)
    assert asked(error) == K3
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize('given, taker, expected, named', [
    ('ECAAttention', by_stage(3, 3, 5, 7), K3, r'=5.*=3 \(layer3\.0\.step'),
    (by_stage(3, 3, 5, 7), 'ECAAttention', by_stage(3, 3, 5, 7),
     r'=3.*=5 \(layer3\.0\.step')])
def test_the_step_that_is_named_takes_them(
        models, given, taker, expected, named):
    state = build(models, given).state_dict()
    with pytest.raises(ValueError, match=f'^backbone.step: .*{named}') as e:
        load_state_dict(build(models, taker), state)
    assert asked(e) == expected
    net = build(models, asked(e))
    load_state_dict(net, state)
    for key, value in state.items():
        assert torch.equal(net.state_dict()[key], value), key


def test_other_stages_keep_their_steps(models):
    rest = [None, 'SEAttention', dict(type='SEAttention', reduction=8)]
    state = build(models, [*rest, K5]).state_dict()
    with pytest.raises(ValueError, match='layer4.0.step') as error:
        load_state_dict(build(models, [*rest, 'ECAAttention']), state)
    assert asked(error) == [*rest, K5]


def test_a_vision_transformer(models):
    arch = dict(embed_dims=32, num_layers=2, num_heads=4,
                feedforward_channels=48)

    def vit(step):
        return models.build(dict(
            type='StepVisionTransformer', arch=arch, img_size=64,
            patch_size=16, step=step))
    with pytest.raises(ValueError, match=r'\(layers\.0\.step\)') as error:
        load_state_dict(vit(K5), vit('ECAAttention').state_dict())
    assert asked(error) == K3
