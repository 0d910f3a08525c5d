import pytest
import torch
from torch import nn

from stepnet_mm.steps import CBAMAttention


def test_equals_timm():
    cbam = pytest.importorskip('timm.layers.cbam')
    theirs = cbam.CbamModule(32, rd_channels=4, mlp_bias=True)
    ours = CBAMAttention(32, reduction=8)
    mlp, conv = theirs.channel, theirs.spatial.conv
    for linear, layer in zip((ours.excitation[0], ours.excitation[2]),
                             (mlp.fc1, mlp.fc2)):
        linear.weight.data = layer.weight.data[:, :, 0, 0]
        linear.bias.data = layer.bias.data
    # timm concatenates [mean, max], the authors [max, mean].
    ours.conv.weight.data = conv.conv.weight.data.flip(1)
    nn.init.constant_(ours.norm.weight, .7)
    nn.init.constant_(conv.bn.weight, .7)
    f = torch.randn(2, 32, 9, 8)
    for training in (False, True):  # their averages have two momenta
        torch.testing.assert_close(
            ours.train(training)(f), theirs.train(training)(f))


def test_it_starts_as_its_authors_network():
    step = CBAMAttention(512)
    for again in (False, True):
        if again:
            for parameter in step.parameters():
                nn.init.constant_(parameter, 7)
            step.init_weights()
        biases = [value for key, value in step.named_parameters()
                  if key.endswith('bias')]
        assert len(biases) == 3 and not any(b.any() for b in biases)
        assert not step.norm.weight.any()
        # Uniform in ± 1 / sqrt(fan-in), as torch draws a linear layer.
        first, _, second = step.excitation
        assert .042 < first.weight.abs().max() <= 512**-.5
        assert .17 < second.weight.abs().max() <= 32**-.5


def test_the_convolution_starts_by_kaiming_over_fan_out():
    weights = torch.stack(
        [CBAMAttention(16).conv.weight.detach() for _ in range(60)])
    assert abs(weights.std() - (2 / 49)**.5) < .005  # 0.202
    assert abs(weights.mean()) < .005
