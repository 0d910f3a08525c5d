import pytest
import torch
from equality import assert_stock
from mmpretrain.registry import MODELS
from torch import nn

ARCH = dict(embed_dims=32, num_layers=3, num_heads=4, feedforward_channels=48)
COMMON = dict(
    arch=ARCH, img_size=64, patch_size=16, with_cls_token=False,
    out_type='avg_featmap')


def build(**kwargs):
    return MODELS.build(
        dict(type='StepVisionTransformer', **{**COMMON, **kwargs}))


@pytest.mark.core
def test_without_step_it_is_the_stock_network():
    stock = MODELS.build(dict(type='VisionTransformer', **COMMON))
    assert_stock(stock, build(step=None))


@pytest.mark.core
@pytest.mark.parametrize('mode', ['replace', 'gate'])
def test_it_is_the_formula(mode):
    """x + f(x) ⊗ F̃(x + f(x), x), f the value projection or the attention."""
    net = build(step_mode=mode, with_cls_token=True, out_type='cls_token')
    for step in net.steps():
        for parameter in step.parameters():
            nn.init.normal_(parameter)
    net.eval()
    layer, x = net.layers[1], torch.randn(2, 17, 32)
    attention = layer.attn[0] if mode == 'replace' else layer.attn
    f = attention(layer.ln1(x))
    delta = layer.step.step_size(*(s.mT[..., None] for s in (x, f)))
    after = x + f * delta[..., 0].mT
    torch.testing.assert_close(
        layer(x), layer.ffn(layer.ln2(after), identity=after))
    assert net(torch.randn(2, 3, 64, 64))[0].shape == (2, 32)


def test_weights_of_a_plain_vit_start_gates_at_one():
    """With 'replace' f is new, and so is Δt: both start as from scratch."""
    stock = MODELS.build(dict(type='VisionTransformer', **COMMON))
    gate, replace = [build(step_mode=mode, frozen_stages=1)
                     for mode in ('gate', 'replace')]
    stock.eval()
    x = torch.randn(2, 3, 64, 64)
    for net in (gate, replace):
        net.load_state_dict(stock.state_dict(), strict=False)
        net.eval()
    assert torch.equal(gate(x)[0], stock(x)[0])
    assert all(step.max_step == 1 for step in replace.steps())
    gate.train(), replace.train()
    gate(x)  # no error: the frozen layer is the plain one
    with pytest.raises(ValueError, match='frozen_stages=1'):
        replace(x)


@pytest.mark.parametrize('bias', [True, False])
def test_the_attention_is_gone_with_replace(bias):
    """The value projection is in the place of qkv and proj."""
    layer = build(qkv_bias=bias).layers[0]
    assert [name for name, _ in layer.attn.named_parameters()] == [
        '0.weight', '0.bias'][:1 + bias]


def test_a_step_for_each_layer():
    net = build(step=['SEAttention', None, 'StepAdaptor'])
    assert len(net.steps()) == 2 and hasattr(net.layers[1].attn, 'qkv')
    net(torch.randn(2, 3, 64, 64))[0].sum().backward()
    assert all(p.grad is not None for step in net.steps()
               for p in step.parameters())


def test_dropout_layer_scale_and_stochastic_depth_stay():
    net = build(drop_rate=.5, layer_scale_init_value=.1, drop_path_rate=.3)
    linear, drop, scale = net.layers[0].attn
    assert drop.p == .5 and (scale.weight == .1).all()
    assert net.layers[2].drop_path.drop_prob == pytest.approx(.3)


@pytest.mark.core
def test_frozen_layers():
    net = build(frozen_stages=1, step=dict(type='StepAdaptor', init_step=1))
    assert not any(p.requires_grad for p in net.layers[0].parameters())
    assert all(p.requires_grad for p in net.layers[1].step.parameters())
    for _ in range(2):
        net.train()
        assert not net.layers[0].step.norm.training
        assert net.layers[1].step.norm.training
        net.eval()
