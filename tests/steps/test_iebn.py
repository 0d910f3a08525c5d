import pytest
import torch
from equality import BOTH
from torch import nn

from stepnet_mm.steps import IEBN


def test_it_is_batchnorm_with_another_weight_for_every_image():
    norm = IEBN(5).double()
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(3, 5, 4, 2, dtype=torch.float64)
    delta = torch.sigmoid(norm.ie.weight * x.mean((2, 3)) + norm.ie.bias)
    normal = nn.functional.batch_norm(x, None, None, training=True)
    weight, bias = norm.weight * delta, norm.bias[:, None, None]
    torch.testing.assert_close(
        norm(x), normal * weight[..., None, None] + bias)


def test_one_value_a_channel_and_autocast():
    norm, x = IEBN(4).train(), torch.randn(1, 4, 1, 1)
    assert norm(x).isfinite().all()
    with torch.autocast('cpu', torch.bfloat16):
        assert norm(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.core
def test_sync_bn_keeps_the_gate():
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(IEBN(4))
    assert isinstance(synced, IEBN) and not synced.bn.affine
    assert isinstance(synced.bn, nn.SyncBatchNorm)


@pytest.mark.core
@BOTH
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
    assert (net.layer1[0].bn1.ie.bias == -1).all()
