import pytest
import torch

from stepnet_mm.steps import SEAttention

pytestmark = pytest.mark.core


def test_equals_timm():
    layers = pytest.importorskip('timm.layers')
    theirs = layers.SEModule(32, rd_channels=4)
    ours = SEAttention(32, reduction=8)
    for linear, conv in zip((ours.excitation[0], ours.excitation[2]),
                            (theirs.fc1, theirs.fc2)):
        linear.weight.data = conv.weight.data[:, :, 0, 0]
        linear.bias.data = conv.bias.data
    f = torch.randn(2, 32, 5, 7)
    torch.testing.assert_close(ours(f), theirs(f))


@pytest.mark.parametrize('bias, count', [(True, 64 * 8 + 4 + 64),
                                         (False, 64 * 8)])
def test_parameter_count(bias, count):
    step = SEAttention(64, bias=bias)
    assert sum(p.numel() for p in step.parameters()) == count


def test_the_width_is_not_rounded():
    assert SEAttention(96).excitation[0].out_features == 6


@pytest.mark.parametrize('reduction', [0, -4, 3, 2., 128, None])
def test_wrong_reduction(reduction):
    with pytest.raises(ValueError, match=f'reduction: .*64 .*got {reduction}'):
        SEAttention(64, reduction=reduction)
