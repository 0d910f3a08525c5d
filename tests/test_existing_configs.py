"""Any existing mm config becomes a StepNet by two lines."""
import pytest
import torch
from mmengine.hub import get_config
from mmengine.registry import init_default_scope

pytestmark = pytest.mark.core
COMMON = dict(frozen_stages=0, init_cfg=None)
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


def build(library, name, backbone):
    """The library's own config after the two lines, as a model."""
    pytest.importorskip(library)
    cfg = get_config(f'{library}::{name}')
    cfg.custom_imports = dict(imports='stepnet_mm')
    cfg.model.backbone.type = backbone
    cfg.model.backbone.update(COMMON)
    take_few_regions(cfg.model.get('train_cfg') or {})
    init_default_scope(library)
    if library == 'mmdet':
        from mmdet.registry import MODELS
    else:
        from mmpretrain.registry import MODELS
    model = MODELS.build(cfg.model)
    model.init_weights()
    model.train()
    return model


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
            for name, p in step.named_parameters()
        }
        optimizer.step()
    return last


def assert_all_reached(gradients):
    silent = [
        name for name, grad in gradients.items()
        if grad is None or not grad.abs().max() > 0
    ]
    assert not silent
    assert len(gradients) >= 12 * 5


def detection_batch():
    from mmdet.testing import demo_mm_inputs
    return demo_mm_inputs(
        2, [[3, 96, 96], [3, 96, 96]], num_classes=3, with_mask=True)


def classification_batch():
    from mmpretrain.structures import DataSample
    return dict(
        inputs=torch.randint(0, 256, (2, 3, 64, 64)),
        data_samples=[DataSample().set_gt_label(i) for i in range(2)])


@pytest.mark.parametrize('name', [
    *(pytest.param(name, marks=pytest.mark.long) for name in DETECTION[:-1]),
    DETECTION[-1]])
def test_detection(name):
    model = build('mmdet', name, 'StepResNet')
    assert_all_reached(step_three_times(model, detection_batch))


@pytest.mark.parametrize('name, backbone', CLASSIFICATION)
def test_classification(name, backbone):
    model = build('mmpretrain', name, backbone)
    assert_all_reached(step_three_times(model, classification_batch))
