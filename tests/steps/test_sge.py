import pytest
import torch
from torch import nn

from stepnet_mm.steps import SGEAttention


def literal(step, f):
    """The formula, one group of one image at a time."""
    out = f.clone()
    width = f.size(1) // step.groups
    for n in range(f.size(0)):
        for g in range(step.groups):
            group = f[n, g * width:(g + 1) * width]
            score = torch.zeros_like(group[0])
            for channel in group:
                score = score + channel * channel.mean()
            score = (score - score.mean()) / (score.std() + step.eps)
            gate = torch.sigmoid(step.weight[g] * score + step.bias[g])
            out[n, g * width:(g + 1) * width] = group * gate
    return out


@pytest.mark.parametrize('groups', [1, 4])
def test_equals_the_literal_formula(groups):
    step = SGEAttention(12, groups=groups).double()
    for parameter in step.parameters():
        nn.init.normal_(parameter)
    f = torch.randn(2, 12, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(step(f), literal(step, f))


def test_wrong_groups():
    with pytest.raises(ValueError, match='groups: '):
        SGEAttention(64, groups=5)
