import copy
import pickle

import pytest
import torch

from stepnet_mm.models import StepBlock, step_block_class

pytestmark = pytest.mark.core
mmdet = pytest.importorskip('mmdet.models.backbones.resnet')


def bottleneck(**kwargs):
    cls = step_block_class(mmdet.Bottleneck,
                           (mmdet.BasicBlock, mmdet.Bottleneck))
    return cls(16, 4, **kwargs)


def test_the_class_is_made_once_and_is_a_block_of_the_library():
    block = bottleneck()
    assert type(block) is type(bottleneck())
    assert isinstance(block, StepBlock)
    assert isinstance(block, mmdet.Bottleneck)


def test_without_a_step_it_is_the_stock_block():
    block = bottleneck()
    stock = mmdet.Bottleneck(16, 4)
    stock.load_state_dict(block.state_dict())
    x = torch.randn(2, 16, 5, 5)
    assert torch.equal(block(x), stock(x))


def test_it_is_x_plus_f_times_step_under_relu():
    block = bottleneck()
    block.step = lambda identity, residual: .25 * residual
    x = torch.randn(2, 16, 5, 5)
    block.eval()
    assert torch.equal(
        block(x), torch.relu(x + .25 * block.residual(x)))


def test_the_step_sees_the_downsampled_identity():
    block = bottleneck(downsample=torch.nn.Conv2d(16, 16, 1))
    seen = []
    block.step = lambda x, f: seen.append(x) or f
    x = torch.randn(2, 16, 5, 5)
    block(x)
    torch.testing.assert_close(seen[0], block.downsample(x))


def test_channels_and_convolutions():
    assert bottleneck().step_channels == 16
    assert bottleneck().num_convs == 3


def test_it_can_be_pickled():
    block = bottleneck()
    twin = pickle.loads(pickle.dumps(block))
    x = torch.randn(2, 16, 5, 5)
    assert type(twin) is type(block)
    assert torch.equal(twin(x), block(x))


def test_checkpointing_gives_the_same_gradients():
    block = bottleneck()
    twin = copy.deepcopy(block)
    twin.with_cp = True
    x = torch.randn(2, 16, 5, 5, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    block(x).square().sum().backward()
    twin(y).square().sum().backward()
    assert torch.equal(x.grad, y.grad)
    for p, q in zip(block.parameters(), twin.parameters()):
        assert torch.equal(p.grad, q.grad)


def test_a_block_with_its_own_forward_is_refused():

    class Gated(mmdet.Bottleneck):

        def forward(self, x):
            return super().forward(x)

    with pytest.raises(TypeError, match='Basic.*Gated.*forward of its own'):
        step_block_class(Gated, (mmdet.BasicBlock, mmdet.Bottleneck))
