import pytest
import torch
from torch import nn

from stepnet_mm.steps import IEBN


def random_norm(channels=5):
    norm = IEBN(channels).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm


def literal(norm, x):
    """BatchNorm's formula with another γ for every image."""
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
    delta = torch.sigmoid(norm.ie.weight * x.mean((2, 3)) + norm.ie.bias)
    normal = (x.movedim(1, -1) - mean) / (var + norm.bn.eps).sqrt()
    scaled = normal * (norm.weight * delta)[:, None, None]
    return (scaled + norm.bias).movedim(-1, 1)


def test_equals_the_literal_formula():
    norm = random_norm()
    x = torch.randn(3, 5, 4, 2, dtype=torch.float64)
    torch.testing.assert_close(norm(x), literal(norm, x))
    x.requires_grad_()
    assert torch.autograd.gradcheck(norm, x, fast_mode=True)


def test_one_value_a_channel_and_bfloat16():
    norm = IEBN(4).train()
    assert norm(torch.randn(1, 4, 1, 1)).isfinite().all()
    x = torch.randn(3, 4, 5, 5)
    with torch.autocast('cpu', torch.bfloat16):
        low = norm(x.bfloat16())
    assert low.dtype == torch.bfloat16
    torch.testing.assert_close(low.float(), norm(x), atol=.03, rtol=.03)


@pytest.mark.core
def test_sync_bn_keeps_the_gate():
    net = nn.Sequential(nn.Conv2d(3, 4, 1), random_norm(4).float())
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(synced[1], IEBN)
    assert isinstance(synced[1].bn, nn.SyncBatchNorm)
    assert not synced[1].bn.affine


@pytest.mark.core
def test_norm_eval_and_zero_init(models):
    net = models.build(dict(
        type='ResNet', depth=18, norm_cfg=dict(type='IEBN'), norm_eval=True,
        zero_init_residual=True, base_channels=8, stem_channels=8))
    net.init_weights()
    net.train()
    norms = [m for m in net.modules() if isinstance(m, IEBN)]
    assert len(norms) == 20
    assert not any(norm.bn.training for norm in norms)
    assert not net.layer1[0].bn2.weight.any()
    assert (net.layer1[0].bn1.weight == 1).all()
    assert (net.layer1[0].bn1.ie.bias == -1).all()
