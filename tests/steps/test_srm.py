import torch
from torch import nn

from stepnet_mm.steps import SRMAttention


def literal(step, f):
    """The formula, one channel of one image at a time, in evaluation."""
    gate = torch.empty(f.shape[:2], dtype=f.dtype)
    norm = step.norm
    for n in range(f.size(0)):
        for c in range(f.size(1)):
            values = f[n, c].flatten().tolist()
            mean = sum(values) / len(values)
            var = sum((v - mean)**2 for v in values) / (len(values) - 1)
            z = (step.mean_weight[c] * mean +
                 step.std_weight[c] * (var + step.eps)**.5)
            z = (z - norm.running_mean[c]) / (
                norm.running_var[c] + norm.eps)**.5
            gate[n, c] = torch.sigmoid(z * norm.weight[c] + norm.bias[c])
    return f * gate[:, :, None, None]


def test_equals_the_literal_formula():
    step = SRMAttention(5).double().eval()
    for tensor in (*step.parameters(), step.norm.running_mean):
        nn.init.normal_(tensor)
    nn.init.uniform_(step.norm.running_var, .5, 1.5)
    f = torch.randn(3, 5, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(step(f), literal(step, f))


def test_no_spread_in_one_pixel():
    step = SRMAttention(5).eval()
    nn.init.ones_(step.std_weight)
    f = torch.randn(2, 5, 1, 1)
    torch.testing.assert_close(step(f), f * .5)
