import pytest
import torch
from mmengine.registry import MODELS


def build(**kwargs):
    return MODELS.build(dict(
        dict(type='mmpretrain.SelfAttentionNet', embed_dims=32,
             feedforward_channels=48), **kwargs))


def test_outputs_of_some_layers():
    net = build(out_indices=(4, 1))
    net.eval()
    outs = net(torch.randn(2, 3, 32, 32))
    assert [out.shape for out in outs] == [(2, 32, 16, 16)] * 2
    # Normalised over channels.
    torch.testing.assert_close(
        outs[0].mean(1), torch.zeros(2, 16, 16), atol=1e-5, rtol=0)


def test_a_step_gates_the_attention():
    plain, net = build(), build(step='StepAdaptor')
    plain.eval(), net.eval()
    net.load_state_dict(plain.state_dict(), strict=False)
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(net(images)[0], plain(images)[0])  # from 1
    layer, x = net.layers[0], torch.randn(2, 32, 16, 16)
    torch.nn.init.normal_(layer.step.ie.weight)  # else Δt sees no state
    f = layer.attn(layer.ln1(x))
    after = x + f * layer.step.step_size(x, f)
    torch.testing.assert_close(layer(x), after + layer.ffn(layer.ln2(after)))


def test_wrong_indices():
    with pytest.raises(ValueError, match='backbone.out_indices: '):
        build(out_indices=(0, -1))
