import pytest
import torch

from stepnet_mm.steps import SEAttention


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


def test_init_gate_shifts_the_logits_and_no_weights():
    torch.manual_seed(0)
    published = SEAttention(64)
    torch.manual_seed(0)
    shifted = SEAttention(64, init_gate=.25)
    for key, value in published.state_dict().items():
        assert torch.equal(shifted.state_dict()[key], value)
    assert published.init_step is None and shifted.init_step is None
    f = torch.randn(3, 64, 5, 5)
    odds = [step.logit().exp() for step in (
        published.step_size(f, f), shifted.step_size(f, f))]
    torch.testing.assert_close(odds[1], odds[0] / 3)


def test_the_width_is_not_rounded():
    assert SEAttention(96).excitation[0].out_features == 6
    assert SEAttention(64, bias=False).excitation[0].bias is None
    with pytest.raises(ValueError, match='reduction: '):
        SEAttention(64, reduction=3)
