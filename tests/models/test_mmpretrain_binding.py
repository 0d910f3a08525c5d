"""Bindings to mmpretrain; the twin file does the same for mmdet."""
import pytest
import torch
from equality import assert_kept, assert_stock, count, stock_and_step

pytestmark = pytest.mark.core
pytest.importorskip('mmpretrain')
from mmpretrain.registry import MODELS  # noqa: E402

ALL = (0, 1, 2, 3)
VARIANTS = dict(
    r18=dict(depth=18, out_indices=ALL),
    r34_drop=dict(depth=34, out_indices=ALL, drop_path_rate=.3),
    r50=dict(depth=50, out_indices=ALL, style='caffe', frozen_stages=1),
    r50_v1d=dict(
        depth=50, out_indices=ALL, deep_stem=True, avg_down=True,
        with_cp=True),
    x50=dict(type='ResNeXt', depth=50, out_indices=ALL, drop_path_rate=.2),
)


@pytest.mark.parametrize('name', VARIANTS)
def test_without_step_it_is_the_stock_network(name):
    assert_stock(*stock_and_step(MODELS, step=None, **VARIANTS[name]))


@pytest.mark.parametrize('name', VARIANTS)
def test_a_step_of_one_keeps_every_output(name):
    assert_kept(*stock_and_step(
        MODELS, step=dict(type='StepAdaptor', init_step=1), **VARIANTS[name]))


@pytest.mark.parametrize('depth, plain, with_step', [
    (34, 21.798, 21.815), (50, 25.557, 25.625), (101, 44.549, 44.721)])
def test_imagenet_parameter_count(depth, plain, with_step):
    head = (513 if depth == 34 else 2049) * 1000
    stock, net = stock_and_step(MODELS, depth=depth)
    assert round((count(stock) + head) / 1e6, 3) == plain
    assert round((count(net) + head) / 1e6, 3) == with_step


def test_drop_path_comes_after_the_step():
    net = MODELS.build(
        dict(type='StepResNet', depth=18, drop_path_rate=.5,
             step='ToyStep'))
    order = []
    block = net.layer4[1]
    block.step.register_forward_hook(lambda *_: order.append('step'))
    block.drop_path.register_forward_hook(lambda *_: order.append('drop'))
    net(torch.randn(2, 3, 32, 32))
    assert order == ['step', 'drop']
