import pytest
import torch
from torch import nn

from stepnet_mm.steps import StepAdaptor
from stepnet_mm.steps.adaptor import INPUTS


def literal(step, x, f):
    """Fig. 4b with its modules: pooling, group convolution, IEBN, σ."""
    c = step.channels
    states = dict(
        both=[x, x + f], current=[x], next=[x + f], difference=[f])
    pooled = [
        nn.functional.adaptive_avg_pool2d(s, 1) for s in states[step.inputs]
    ]
    interleaved = torch.stack(pooled, 2).flatten(1, 2)
    conv = nn.Conv2d(c * len(pooled), c, 1, groups=c, bias=False).to(x.dtype)
    conv.weight.data = step.conv_weight.data[:, :, None, None]
    z = step.norm(conv(interleaved))
    ie = step.ie.weight[:, None, None] * z + step.ie.bias[:, None, None]
    return f * step.max_step * torch.sigmoid(ie)


def random_adaptor(**kwargs):
    step = StepAdaptor(5, **kwargs).double()
    for parameter in step.parameters():
        nn.init.normal_(parameter)
    return step


@pytest.mark.parametrize('inputs', INPUTS)
def test_equals_the_literal_figure(inputs):
    step = random_adaptor(inputs=inputs)
    states = torch.randn(
        2, 3, 5, 4, 6, dtype=torch.float64, requires_grad=True)
    x, f = states
    out, expected = step(x, f), literal(step, x, f)
    torch.testing.assert_close(out, expected, atol=1e-12, rtol=1e-12)
    cotangent = torch.randn_like(out)
    torch.testing.assert_close(
        *(torch.autograd.grad(y, states, cotangent)[0]
          for y in (out, expected)), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize('init_step', [.01, .5, .7])
def test_starts_at_init_step_for_every_input(init_step):
    step = StepAdaptor(5, init_step=init_step)
    x, f = torch.randn(2, 3, 5, 4, 4)
    torch.testing.assert_close(
        step.step_size(x, f), torch.full((3, 5, 1, 1), init_step))


def test_a_pretrained_block_starts_it_at_one():
    step = StepAdaptor(5)
    nn.init.normal_(step.ie.weight)
    step.start_pretrained()
    x, f = torch.randn(2, 3, 5, 4, 4)
    assert torch.equal(step(x, f), f)
    assert repr(step).startswith("StepAdaptor(\n  5, inputs='both', "
                                 'max_step=2.0')
    step.init_weights()
    assert torch.equal(step(x, f), f)


def test_a_number_or_a_checkpoint_says_where_it_starts():
    chosen = StepAdaptor(5, init_step=.4)
    loaded = StepAdaptor(5)
    loaded.load_state_dict(StepAdaptor(5).state_dict())
    for step in (chosen, loaded):
        bias = step.ie.bias.clone()
        step.start_pretrained()
        assert torch.equal(step.ie.bias, bias) and step.max_step == 1
    assert 'init_step=0.4, max_step=1.0' in repr(chosen)


def test_a_start_of_one_is_exactly_one_and_learns():
    step = StepAdaptor(5, init_step=1)
    x, f = torch.randn(2, 3, 5, 4, 4)
    assert torch.equal(step(x, f), f)
    half = f.bfloat16()
    assert torch.equal(step(x.bfloat16(), half), half)
    step(x, f).sum().backward()
    assert step.ie.weight.grad.abs().min() > 0
    assert step.ie.bias.grad.abs().min() > 0


def test_a_checkpoint_keeps_the_form_of_the_gate():
    trained = StepAdaptor(5, init_step=1)
    fresh = StepAdaptor(5)
    fresh.load_state_dict(trained.state_dict())
    x, f = torch.randn(2, 3, 5, 4, 4)
    assert torch.equal(fresh(x, f), f)


def test_norm_cfg_is_used():
    step = StepAdaptor(8, norm_cfg=dict(type='GN', num_groups=2))
    assert isinstance(step.norm, nn.GroupNorm)


@pytest.mark.parametrize('wrong, match', [
    (dict(inputs='previous'), r'backbone\.step\.inputs: .*previous'),
    (dict(norm_cfg=dict(type='Foo')), r'backbone\.step\.norm_cfg: .*Foo'),
    (dict(norm_cfg=dict(num_groups=2)), 'norm_cfg.*"type"'),
    (dict(norm_cfg=dict(type='BN', foo=1)), r'backbone\.step\.norm_cfg.*foo'),
    (dict(init_step=0), r'backbone\.step\.init_step.*0'),
    (dict(init_step=True), r'backbone\.step\.init_step: .*got True'),
    (dict(norm_cfg=dict(type='GN')), 'norm_cfg.*num_groups=32'),
])
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        StepAdaptor(5, **wrong)


def test_as_a_plugin_it_names_backbone_step():
    with pytest.raises(ValueError, match=r'backbone\.step'):
        StepAdaptor(in_channels=5)
