"""What walks or traces a network: torch.fx, mmcv's fusion, Grad-CAM."""
import copy

import pytest
import torch
from attentions import ALL, cfg_of
from equality import BOTH
from torch import nn

MODELS = pytest.importorskip('mmpretrain.registry').MODELS


def build(step, **kwargs):
    """A small network whose norms have seen a batch."""
    net = MODELS.build(dict(
        type='StepResNet', depth=18, step=cfg_of(step), base_channels=16,
        stem_channels=16, num_stages=2, strides=(1, 2), dilations=(1, 1),
        out_indices=(1, ), **kwargs))
    net.train()
    net(torch.randn(4, 3, 32, 32))
    return net


@pytest.mark.core
@pytest.mark.parametrize('step', [
    'StepAdaptor',
    *(pytest.param(step, marks=pytest.mark.long)
      for step in ALL if step != 'StepAdaptor')])
def test_fx_traces_the_modules(step):
    net, plain = build(step), build(step, fused=False)
    graph, x = torch.fx.symbolic_trace(net), torch.randn(2, 3, 32, 32)
    for mode in (True, False):
        graph.train(mode), plain.train(mode)
        plain.load_state_dict(net.state_dict())
        assert torch.equal(graph(x)[0], plain(x)[0])


def test_jit_traces_the_modules_with_gradients():
    """Twice, to compare the graphs: as TensorBoard's add_graph."""
    net, x = build('StepAdaptor').eval(), torch.randn(2, 3, 32, 32)
    traced = torch.jit.trace(net, x)
    torch.testing.assert_close(traced(x[:1])[0], net(x[:1])[0])


@pytest.mark.parametrize('preact', [True, False])
def test_mmcv_folds_norms_into_convolutions(preact):
    from mmcv.cnn.utils import fuse_conv_bn
    net = MODELS.build(dict(type='StepResNetCIFAR', depth=20, preact=preact))
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -.5, .5)
            nn.init.uniform_(module.weight, .5, 1.5)
    net.eval()
    x = torch.randn(2, 3, 16, 16)
    folded = fuse_conv_bn(copy.deepcopy(net))
    assert isinstance(folded.layer1[0].bn2, nn.Identity)
    torch.testing.assert_close(folded(x), net(x))


def grad_cam(net, x):
    """What Grad-CAM's default layer shows, and its gradient."""
    *_, last = [module for _, module in net.named_modules(prefix='backbone')
                if isinstance(module, nn.BatchNorm2d)]
    shown = []

    def look(module, args, output):
        shown.append(output.detach())
        output.register_hook(shown.append)

    with last.register_forward_hook(look):
        net(x)[-1].square().sum().backward()
    return shown


@BOTH
@pytest.mark.parametrize('f_is_zero', [False, True])
@pytest.mark.parametrize('depth', [18, 50])
def test_grad_cam_sees_what_it_sees_in_the_stock_network(
        models, depth, f_is_zero):
    cfg = dict(depth=depth, base_channels=8, stem_channels=8)
    stock = models.build(dict(cfg, type='ResNet'))
    if f_is_zero:
        stock.init_weights()
    net = models.build(dict(cfg, type='StepResNet'))
    net.load_state_dict(stock.state_dict(), strict=False)  # steps of 1
    stock.eval(), net.eval()
    x = torch.randn(2, 3, 64, 64)
    for ours, theirs in zip(grad_cam(net, x), grad_cam(stock, x)):
        assert torch.equal(ours, theirs) and ours.any()
    # Every other loss and gradient is as without a hook.
    found = [*net.named_parameters()]
    seen = [p.grad for _, p in found]
    net.zero_grad()
    net(x)[-1].square().sum().backward()
    for (name, p), grad in zip(found, seen):
        torch.testing.assert_close(p.grad, grad, msg=name)


def test_parameters_keep_their_order():
    """With a prefix alone steps stand before the norms."""
    net = build('StepAdaptor')
    parameters = dict(net.named_parameters())
    assert [*parameters] == [k for k in net.state_dict() if k in parameters]
