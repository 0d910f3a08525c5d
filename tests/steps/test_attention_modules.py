"""SE, ECA, CBAM, SRM, SGE and SEM: equal to timm or to their formulas."""
import math

import pytest
import torch
import torch.nn.functional as F
from attentions import cfg_of, randomised, states
from torch import nn

from stepnet_mm.steps import CBAMAttention, SEAttention, build_step
from stepnet_mm.steps.channel_attention import adaptive_kernel_size


def _copy_mlp(ours, theirs):
    first, _, second = ours.excitation
    for linear, conv in ((first, theirs.fc1), (second, theirs.fc2)):
        linear.weight.data = conv.weight.data[:, :, 0, 0]
        linear.bias.data = conv.bias.data


def test_se_equals_timm():
    theirs = pytest.importorskip('timm.layers').SEModule(32, rd_channels=4)
    ours = SEAttention(32, reduction=8)
    _copy_mlp(ours, theirs)
    f = torch.randn(2, 32, 5, 7)
    torch.testing.assert_close(ours(f), theirs(f))


@pytest.mark.parametrize('kernel_size', [1, 5])
def test_eca_equals_timm(kernel_size):
    layers = pytest.importorskip('timm.layers')
    theirs = layers.EcaModule(kernel_size=kernel_size)
    ours = build_step(dict(type='ECAAttention', kernel_size=kernel_size), 16)
    ours.conv.weight.data = theirs.conv.weight.data
    f = torch.randn(2, 16, 5, 7)
    torch.testing.assert_close(ours(f), theirs(f))


def test_cbam_equals_timm():
    cbam = pytest.importorskip('timm.layers.cbam')
    theirs = cbam.CbamModule(32, rd_channels=4, mlp_bias=True)
    ours, conv = CBAMAttention(32, reduction=8), theirs.spatial.conv
    _copy_mlp(ours, theirs.channel)
    # timm concatenates [mean, max], the authors [max, mean].
    ours.conv.weight.data = conv.conv.weight.data.flip(1)
    nn.init.constant_(ours.norm.weight, .7)
    nn.init.constant_(conv.bn.weight, .7)
    f = torch.randn(2, 32, 9, 8)
    for training in (False, True):  # their averages have two momenta
        torch.testing.assert_close(
            ours.train(training)(f), theirs.train(training)(f))


def srm(step, f):
    norm = step.norm
    z = step.mean_weight * f.mean((2, 3)) + step.std_weight * (
        f.var((2, 3)) + step.eps).sqrt()
    z = (z - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    return torch.sigmoid(z * norm.weight + norm.bias)[:, :, None, None]


def sge(step, f):
    gates = []
    for g, group in enumerate(f.chunk(step.groups, 1)):
        score = (group * group.mean((2, 3), keepdim=True)).sum(1)
        score = torch.stack([(image - image.mean()) /
                             (image.std() + step.eps) for image in score])
        gate = torch.sigmoid(step.weight[g] * score + step.bias[g])
        gates.append(gate[:, None].expand_as(group))
    return torch.cat(gates, 1)


def sem(step, f):
    z, (first, _, second) = f.mean((2, 3)), step.excitation
    kernel = step.conv.weight.flatten()
    padded = F.pad(z, [len(kernel) // 2] * 2)
    logits = (
        (z @ first.weight.T + first.bias).relu() @ second.weight.T +
        second.bias,
        sum(k * padded[:, i:i + z.size(1)] for i, k in enumerate(kernel)),
        step.ie.weight * z + step.ie.bias)
    alpha = (z @ step.switch.weight.T + step.switch.bias).sigmoid()
    gates = [(alpha[:, i:i + 1] * u).sigmoid() for i, u in enumerate(logits)]
    return math.prod(gates)[:, :, None, None]


@pytest.mark.parametrize('formula, name, kwargs', [
    (srm, 'SRMAttention', {}), (sge, 'SGEAttention', dict(groups=1)),
    (sge, 'SGEAttention', dict(groups=4)), (sem, 'SEMAttention', {})])
def test_equals_the_literal_formula(formula, name, kwargs):
    step = randomised(name, **kwargs).double().eval()
    if name == 'SRMAttention':
        nn.init.normal_(step.norm.running_mean)
        nn.init.uniform_(step.norm.running_var, .5, 1.5)
    _, f = states(dtype=torch.float64)
    torch.testing.assert_close(step(f), f * formula(step, f))


def test_cbam_starts_as_its_authors_network():
    step = CBAMAttention(512)
    biases = [value for key, value in step.named_parameters()
              if key.endswith('bias')]
    assert len(biases) == 3 and not any(b.any() for b in biases)
    assert not step.norm.weight.any()
    # Kaiming over fan-out.
    assert abs(step.conv.weight.std() - (2 / 49)**.5) < .03


def test_the_kernel_grows_with_the_channels():
    """Eq. 12 of ECA: |log2(C)/2 + 1/2|, the nearest odd number upwards."""
    for channels, size in ((16, 3), (64, 3), (100, 3), (256, 5), (2048, 7)):
        assert adaptive_kernel_size(channels) == size
    for cfg in ('SEMAttention', dict(type='ECAAttention', kernel_size=None)):
        assert build_step(cfg, 256).conv.kernel_size == (5, )


@pytest.mark.parametrize('name', ['SEAttention', 'ECAAttention'])
def test_init_gate_shifts_the_logits_and_no_weights(name):
    published = build_step(cfg_of(name), 16)
    shifted = build_step(cfg_of(name, init_gate=.25), 16)
    shifted.load_state_dict(published.state_dict())
    f = torch.randn(2, 16, 5, 7)
    odds = [step.step_size(f, f).logit().exp()
            for step in (published, shifted)]
    torch.testing.assert_close(odds[1], odds[0] / 3)


@pytest.mark.parametrize('name, key, values', [
    ('SEAttention', 'reduction', (0, -4, 3, 128)),
    ('SEAttention', 'init_gate', (0., 1., math.nan)),
    ('SGEAttention', 'groups', (5, )),
    ('FCAAttention', 'dct_size', (6, )),
    ('FCAAttention', 'reduction', (7, )),
    ('ECAAttention', 'kernel_size', (-1, 2))])
def test_wrong_arguments(name, key, values):
    for value in values:
        with pytest.raises(ValueError, match=f'^{key}: .*got {value}'):
            build_step({'type': name, key: value}, 64)


def test_frequencies_need_a_multiple_of_16_channels():
    with pytest.raises(ValueError, match='got 40'):
        build_step('FCAAttention', 40)
