import math

import torch
from torch import nn

from stepnet_mm.steps import SEMAttention


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def literal(step, f):
    """The formula with loops over numbers, one image at a time."""
    channels = f.size(1)
    (w1, b1), (w2, b2) = [(layer.weight.tolist(), layer.bias.tolist())
                          for layer in (step.excitation[0],
                                        step.excitation[2])]
    kernel = step.conv.weight.flatten().tolist()
    half = len(kernel) // 2
    gates = []
    for image in f:
        z = [float(channel.mean()) for channel in image]
        alpha = [
            sigmoid(sum(w * v for w, v in zip(row, z)) + b)
            for row, b in zip(step.switch.weight.tolist(),
                              step.switch.bias.tolist())
        ]
        hidden = [
            max(0, sum(w * v for w, v in zip(row, z)) + b)
            for row, b in zip(w1, b1)
        ]
        for c in range(channels):
            se = sum(w * h for w, h in zip(w2[c], hidden)) + b2[c]
            eca = sum(k * z[c + i - half] for i, k in enumerate(kernel)
                      if 0 <= c + i - half < channels)
            ie = step.ie.weight[c].item() * z[c] + step.ie.bias[c].item()
            gates.append(
                sigmoid(alpha[0] * se) * sigmoid(alpha[1] * eca) *
                sigmoid(alpha[2] * ie))
    return f * torch.tensor(gates, dtype=f.dtype).view(*f.shape[:2], 1, 1)


def test_equals_the_literal_formula():
    step = SEMAttention(16, reduction=4).double()
    for parameter in step.parameters():
        nn.init.normal_(parameter)
    f = torch.randn(2, 16, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(step(f), literal(step, f))


def test_the_kernel_grows_with_the_channels():
    for channels, kernel in ((64, 3), (128, 5), (256, 5)):
        assert SEMAttention(channels).conv.kernel_size == (kernel, )
