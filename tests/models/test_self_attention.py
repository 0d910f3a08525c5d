import pytest
import torch
from mmengine.registry import MODELS

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.stiffness import total_neural_stiffness

pytestmark = pytest.mark.core
pytest.importorskip('mmpretrain')


def build(**kwargs):
    torch.manual_seed(0)
    return MODELS.build(dict(
        dict(type='mmpretrain.SelfAttentionNet', embed_dims=32,
             feedforward_channels=48), **kwargs))


def images():
    torch.manual_seed(1)
    return torch.randn(2, 3, 32, 32)


def test_six_layers_of_nine_heads_of_full_width():
    net = build(embed_dims=400, feedforward_channels=512)
    assert [layer.attn.num_heads for layer in net.layers] == [9] * 6
    assert all(layer.attn.head_dim == 400 and not layer.attn.content
               for layer in net.layers)
    assert net(images())[0].shape == (2, 400, 16, 16)


def test_the_layers_that_are_returned():
    net = build(out_indices=(4, 1))
    net.eval()
    outs = net(images())
    assert [out.shape for out in outs] == [(2, 32, 16, 16)] * 2
    # Normalised over channels.
    torch.testing.assert_close(
        outs[0].mean(1), torch.zeros(2, 16, 16), atol=1e-5, rtol=0)


@pytest.mark.parametrize('attention', [
    dict(encoding='quadratic'), dict(encoding='quadratic', content=True),
    dict(encoding='learned', max_size=16, content=True, head_dim=4),
    dict(encoding='absolute', max_size=16, content=True)])
def test_other_kinds_of_attention(attention):
    net = build(attention=attention)
    net(images())[0].square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all()
               for p in net.parameters())


def test_a_step_gates_the_attention():
    net = build(step=dict(type='StepAdaptor'))
    net.eval()
    layer, x = net.layers[0], torch.randn(2, 32, 16, 16)
    torch.nn.init.normal_(layer.step.ie.weight)  # else Δt sees no state
    f = layer.attn(layer.ln1(x))
    after = x + f * layer.step.step_size(x, f)
    torch.testing.assert_close(
        layer(x), after + layer.ffn(layer.ln2(after)))


def test_a_step_of_one_keeps_the_network():
    plain, net = build(), build(step=dict(type='StepAdaptor', init_step=1))
    net.load_state_dict(plain.state_dict(), strict=False)
    plain.eval(), net.eval()
    torch.testing.assert_close(
        net(images())[0], plain(images())[0], atol=0, rtol=0)


def test_weights_of_a_plain_network_start_steps_at_one():
    plain, net = build(), build(step='StepAdaptor')
    net.load_state_dict(plain.state_dict(), strict=False)
    plain.eval(), net.eval()
    assert torch.equal(net(images())[0], plain(images())[0])


@pytest.mark.parametrize('step', [None, 'StepAdaptor'])
def test_the_recorder_measures_it(step):
    net = build(step=step)
    with TrajectoryRecorder(net) as recorder, torch.no_grad():
        net(images())
    assert recorder.definition == 'residual'
    assert recorder.blocks == [f'layers.{i}' for i in range(1, 6)]
    states = [None] * 6
    for i, layer in enumerate(net.layers):
        layer.register_forward_hook(
            lambda module, x, y, i=i: states.__setitem__(i, (x[0], y)))
    net.eval()
    with TrajectoryRecorder(net) as recorder, torch.no_grad():
        net(images())
    want = torch.stack([
        (y - x).flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)
        for x, y in states[1:]], 1)
    torch.testing.assert_close(recorder.nsi.float(), want)
    assert total_neural_stiffness(
        recorder.nsi, recorder.stage).isfinite().all()


def test_bad_arguments_and_images():
    with pytest.raises(ValueError, match='out_indices.*0 to 5'):
        build(out_indices=(6, ))
    for wrong in (-1, (1, 1), ()):
        with pytest.raises(ValueError, match='out_indices'):
            build(out_indices=wrong)
    for key in ('num_layers', 'downsample'):
        with pytest.raises(ValueError, match=f'backbone.{key}: .*got 0'):
            build(**{key: 0})
    with pytest.raises(ValueError, match="attention: .* got .'num_heads'"):
        build(attention=dict(num_heads=3))
    with pytest.raises(ValueError, match='max_size'):
        build(attention=dict(encoding='learned'))
    with pytest.raises(ValueError, match=r'got \(31, 32\).*downsample=2'):
        build()(torch.zeros(1, 3, 31, 32))
    with pytest.raises(ValueError, match=r'max_size=16.*\(20, 20\)'):
        build()(torch.zeros(1, 3, 40, 40))
