import pytest
import torch

from stepnet_mm.models import StepBlock, step_block_class

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


def test_it_is_the_downsampled_x_plus_f_times_step_under_relu():
    block = bottleneck(downsample=torch.nn.Conv2d(16, 16, 1)).eval()
    seen = []
    block.step = lambda identity, residual: (
        seen.append(identity) or .25 * residual)
    x = torch.randn(2, 16, 5, 5)
    identity = block.downsample(x)
    assert torch.equal(
        block(x), torch.relu(identity + .25 * block.residual(x)))
    assert torch.equal(seen[0], identity)
