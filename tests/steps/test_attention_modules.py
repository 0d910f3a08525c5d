"""SE, ECA, CBAM, SRM, SGE, SEM and FCA: equal to timm or their formulas."""
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attentions import cfg_of, randomised, states
from torch import nn

from stepnet_mm.steps import CBAMAttention, FCAAttention, build_step
from stepnet_mm.steps.channel_attention import adaptive_kernel_size
from stepnet_mm.steps.fca import TOP16


@pytest.mark.parametrize('cfg, make', [
    (dict(type='SEAttention', reduction=8),
     lambda layers: layers.SEModule(32, rd_channels=4)),
    (dict(type='ECAAttention', kernel_size=5),
     lambda layers: layers.EcaModule(kernel_size=5)),
    (dict(type='CBAMAttention', reduction=8),
     lambda layers: layers.create_attn(
         'cbam', 32, rd_channels=4, mlp_bias=True))],
    ids=['se', 'eca', 'cbam'])
def test_equals_timm(cfg, make):
    theirs = make(pytest.importorskip('timm.layers'))
    ours, f = build_step(cfg, 32), torch.randn(2, 32, 9, 8)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(other, std=.3)
        own.data = other.data.view_as(own).clone()
    if cfg['type'] == 'CBAMAttention':
        # timm concatenates [mean, max], the authors [max, mean].
        ours.conv.weight.data = ours.conv.weight.data.flip(1)
    for training in (False, True):  # CBAM's averages have two momenta
        torch.testing.assert_close(
            ours.train(training)(f), theirs.train(training)(f))


def test_cbams_convolution_starts_by_its_fan_out():
    """The goldens have the other starts."""
    weight = CBAMAttention(32, 8).conv.weight
    assert weight.std().item() == pytest.approx((2 / 49)**.5, abs=.03)


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


@pytest.mark.parametrize('formula, name', [
    (srm, 'SRMAttention'), (sge, 'SGEAttention'), (sem, 'SEMAttention')])
def test_equals_the_literal_formula(formula, name):
    step = randomised(name).double().eval()
    if name == 'SRMAttention':
        nn.init.normal_(step.norm.running_mean)
        nn.init.uniform_(step.norm.running_var, .5, 1.5)
    _, f = states(dtype=torch.float64)
    torch.testing.assert_close(step(f), f * formula(step, f))


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


@pytest.mark.parametrize('size', [7, 16])
def test_the_spectrum_equals_scipys_dct(size):
    fft = pytest.importorskip('scipy.fft')
    step = FCAAttention(32, dct_size=size)
    f = torch.randn(2, 32, size, size)
    whole = fft.dctn(f.double().numpy(), axes=(2, 3), norm='ortho')
    scale = size // 7
    expected = np.stack([
        whole[:, c, TOP16[c // 2][0] * scale, TOP16[c // 2][1] * scale]
        for c in range(32)
    ], 1)
    torch.testing.assert_close(
        step.spectrum(f)[:, :, 0, 0].double(),
        torch.from_numpy(expected), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('size', [(14, 21), (4, 5)])
def test_another_size_is_pooled(size):
    step, f = FCAAttention(32, dct_size=7), torch.randn(2, 32, *size)
    torch.testing.assert_close(
        step.spectrum(f), step.spectrum(F.adaptive_avg_pool2d(f, 7)))


def test_the_spectrum_is_exact_under_autocast():
    step = FCAAttention(32, dct_size=14)
    f = (torch.randn(2, 32, 14, 14) + 3).bfloat16()
    with torch.autocast('cpu', torch.bfloat16):
        low = step.spectrum(f)
    torch.testing.assert_close(
        low, step.spectrum(f.float()), atol=1e-4, rtol=1e-4)
