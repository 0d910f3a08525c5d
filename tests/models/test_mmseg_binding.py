"""Bindings to mmsegmentation: networks built, converted and trained."""
import pytest
import torch
from equality import assert_bound
from mmengine.config import Config
from mmengine.runner import Runner

pytest.importorskip('mmseg')
from mmseg.registry import MODELS  # noqa: E402

from stepnet_mm.config.conversion import (  # noqa: E402
    find_config,
    to_stepnet,
)

#: As its configs have them; another library's networks dilate otherwise.
DILATED = dict(depth=50, base_channels=8, stem_channels=8,
               strides=(1, 2, 1, 1), dilations=(1, 1, 2, 4),
               contract_dilation=True)
PSPNET = 'mmseg::pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py'
SMALL = '''
norm_cfg = dict(type='BN')
model = dict(
    pretrained=None,
    data_preprocessor=dict(size=(32, 32)),
    backbone=dict(depth=18, base_channels=8, stem_channels=8,
                  norm_cfg=norm_cfg),
    decode_head=dict(in_channels=64, channels=8, num_classes=3,
                     norm_cfg=norm_cfg),
    auxiliary_head=dict(in_channels=32, channels=8, num_classes=3,
                        norm_cfg=norm_cfg))
'''


@pytest.mark.parametrize('kwargs', [
    dict(type='ResNetV1c'),
    *(pytest.param(kwargs, marks=pytest.mark.long) for kwargs in (
        dict(type='ResNet', multi_grid=(1, 2, 4), frozen_stages=1),
        dict(type='ResNetV1d', norm_eval=True),
        dict(type='ResNeXt', groups=4, with_cp=True)))])
def test_no_step_and_a_step_of_one_keep_the_network(kwargs):
    assert_bound(MODELS, **DILATED, **kwargs)


def test_an_installed_config_is_converted(tmp_path):
    path = tmp_path / 'stepnet.py'
    path.write_text(to_stepnet(PSPNET, str(path)))
    assert Config.fromfile(path).model.backbone.type == 'StepResNetV1c'


def train(path, work_dir, iterations, resume=False, **backbone):
    """The losses of a short training on random images, and its weights."""
    cfg = Config.fromfile(path)
    cfg.model.backbone.update(backbone)
    runner = Runner(
        cfg.model, str(work_dir), train_dataloader=dict(
            batch_size=2, num_workers=0, dataset=[sample(i) for i in range(8)],
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='pseudo_collate')),
        train_cfg=dict(type='ResumableIterBasedTrainLoop',
                       max_iters=iterations),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=.01, momentum=.9)),
        default_hooks=dict(checkpoint=dict(
            type='AtomicCheckpointHook', by_epoch=False, interval=2)),
        resume=resume, randomness=dict(seed=0), default_scope='mmseg',
        experiment_name=f'{work_dir.name}{iterations}', log_level='ERROR')
    runner.train()
    return runner.model.state_dict()


def sample(seed):
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample
    torch.manual_seed(seed)
    label = PixelData(data=torch.randint(3, (1, 32, 32)))
    return dict(inputs=torch.randint(256, (3, 32, 32)).byte(),
                data_samples=SegDataSample(gt_sem_seg=label))


@pytest.mark.long
def test_a_converted_config_trains(tmp_path):
    """As stock without steps; and resumed as without a stop."""
    pspnet, ours = tmp_path / 'pspnet.py', tmp_path / 'stepnet.py'
    pspnet.write_text(f"_base_ = '{find_config(PSPNET)}'{SMALL}")
    ours.write_text(to_stepnet(str(pspnet), str(ours)))
    stock = train(pspnet, tmp_path / 'stock', 2)
    plain = train(ours, tmp_path / 'plain', 2, step=None)
    assert [*stock] == [*plain]
    assert all(torch.equal(stock[key], plain[key]) for key in stock)
    whole = train(ours, tmp_path / 'whole', 4)
    assert any('step.ie.weight' in key for key in whole)
    train(ours, tmp_path / 'halves', 2)
    halves = train(ours, tmp_path / 'halves', 4, resume=True)
    assert all(torch.equal(halves[key], whole[key]) for key in whole)
