"""Any existing mm config becomes a StepNet by two lines."""
import copy

import pytest
import torch
from mmengine.hub import get_config
from mmengine.registry import init_default_scope

DETECTION = [
    'retinanet/retinanet_r50_fpn_1x_coco.py',
    'mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
    'dcn/cascade-rcnn_r50-dconv-c3-c5_fpn_1x_coco.py',
]
CLASSIFICATION = [
    ('resnet/resnet50_8xb32_in1k.py', 'StepResNet'),
    ('resnext/resnext50-32x4d_8xb32_in1k.py', 'StepResNeXt'),
]


def take_few_regions(train_cfg):
    """The heads behind 512 of them cost far more than the backbone."""
    stages = train_cfg.get('rcnn', [])
    for stage in stages if isinstance(stages, list) else [stages]:
        stage.sampler.num = 16


def build(library, name, backbone, folder):
    """The library's own config after the two lines, as a model.

    Its weights, where it has some, are those of a stock network here, which
    is returned too.
    """
    pytest.importorskip(library)
    cfg = get_config(f'{library}::{name}')
    init_default_scope(library)
    if library == 'mmdet':
        from mmdet.registry import MODELS
    else:
        from mmpretrain.registry import MODELS
    stock, load = None, cfg.model.backbone.get('init_cfg')
    if load:
        stock = stock_network(MODELS, cfg.model.backbone)
        load.checkpoint = str(folder / 'weights.pth')
        torch.save(stock.state_dict(), load.checkpoint)
    cfg.custom_imports = dict(imports='stepnet_mm')
    cfg.model.backbone.type = backbone
    take_few_regions(cfg.model.get('train_cfg') or {})
    model = MODELS.build(cfg.model)
    model.init_weights()
    return model, stock


def stock_network(models, cfg):
    net = models.build(dict(copy.deepcopy(cfg), init_cfg=None))
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, .5, 1.)
    return net


def assert_starts_as(stock, net):
    if stock is None:
        assert all(step.max_step == 1 for step in net.steps())
        return
    stock.eval(), net.eval()
    with torch.no_grad():
        x = torch.randn(1, 3, 96, 96)
        for a, b in zip(stock(x), net(x)):
            assert torch.equal(a, b)


def step_three_times(model, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    for _ in range(3):
        optimizer.zero_grad()
        data = model.data_preprocessor(batch(), training=True)
        losses = model(**data, mode='loss')
        loss, _ = model.parse_losses(losses)
        assert torch.isfinite(loss)
        loss.backward()
        for name, p in model.backbone.named_parameters():
            assert p.grad is None or torch.isfinite(p.grad).all(), name
        last = {
            f'{i}.{name}': p.grad
            for i, step in enumerate(model.backbone.steps())
            for name, p in step.named_parameters() if p.requires_grad
        }
        optimizer.step()
    return last


def assert_all_reached(gradients):
    silent = [
        name for name, grad in gradients.items()
        if grad is None or not grad.abs().max() > 0
    ]
    assert not silent
    # All 12 adaptors of a R-50; 10 where its first stage is frozen.
    assert len(gradients) >= 10 * 5


def detection_batch():
    from mmdet.testing import demo_mm_inputs
    return demo_mm_inputs(
        2, [[3, 96, 96], [3, 96, 96]], num_classes=3, with_mask=True)


def classification_batch():
    from mmpretrain.structures import DataSample
    return dict(
        inputs=torch.randint(0, 256, (2, 3, 64, 64)),
        data_samples=[DataSample().set_gt_label(i) for i in range(2)])


@pytest.mark.long
@pytest.mark.parametrize('name', [
    *DETECTION[:-1], pytest.param(DETECTION[-1], marks=pytest.mark.core)])
def test_detection(name, tmp_path):
    model, stock = build('mmdet', name, 'StepResNet', tmp_path)
    assert model.backbone.frozen_stages == 1
    assert_starts_as(stock, model.backbone)
    model.train()
    assert_all_reached(step_three_times(model, detection_batch))


@pytest.mark.core
@pytest.mark.parametrize('name, backbone', [
    CLASSIFICATION[0], *(pytest.param(*case, marks=pytest.mark.long)
                         for case in CLASSIFICATION[1:])])
def test_classification(name, backbone, tmp_path):
    model, stock = build('mmpretrain', name, backbone, tmp_path)
    assert_starts_as(stock, model.backbone)
    model.train()
    assert_all_reached(step_three_times(model, classification_batch))
