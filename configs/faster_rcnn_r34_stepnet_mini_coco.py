"""Faster R-CNN with a narrow StepNet on the drawn mini-COCO: the demo.

Depth 34, not 18: a stage of R-18 has one measured block (the first is left
out), so its TNS is 0 by definition. At half the width (base_channels=32) it
costs less than R-18.
Command: bash tools/demo.sh
Result: docs/results/detection.md.
"""
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)

norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    backbone=dict(
        type='StepResNet',
        depth=34,
        base_channels=32,
        norm_cfg=norm_cfg,
        # From scratch: everything learns, BatchNorm included.
        norm_eval=False,
        frozen_stages=-1,
        init_cfg=None,
        # A residual that starts at 0 wastes some of these few iterations.
        zero_init_residual=False),
    neck=dict(
        in_channels=[32, 64, 128, 256], out_channels=64, norm_cfg=norm_cfg),
    rpn_head=dict(
        in_channels=64,
        feat_channels=64,
        anchor_generator=dict(scales=[4])),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=64),
        bbox_head=dict(in_channels=64, fc_out_channels=256, num_classes=3)),
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=200, max_per_img=100),
        rcnn=dict(sampler=dict(num=64))),
    test_cfg=dict(rpn=dict(nms_pre=100, max_per_img=50)))

data_root = 'data/mini_coco/'
# Two thirds of the drawn size: less than half the cost, and AP is still taken
# in the pixels of the drawn images.
scale = (128, 128)
metainfo = dict(
    classes=('circle', 'square', 'triangle'),
    palette=[(255, 255, 255), (255, 200, 0), (0, 220, 255)])
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape',
                   'scale_factor')),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    sampler=dict(_delete_=True, type='InfiniteSampler', shuffle=True),
    dataset=dict(
        data_root=data_root,
        metainfo=metainfo,
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(
        data_root=data_root, metainfo=metainfo, pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(
    ann_file=data_root + 'annotations/instances_val2017.json')
test_evaluator = val_evaluator

max_iters = 480
train_cfg = dict(
    _delete_=True,
    type='IterBasedTrainLoop',
    max_iters=max_iters,
    val_interval=max_iters)
optim_wrapper = dict(
    optimizer=dict(
        _delete_=True, type='AdamW', lr=1e-3, weight_decay=0.01),
    clip_grad=dict(max_norm=10))
auto_scale_lr = dict(base_batch_size=4)  # which this lr is for
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=30),
    dict(
        type='CosineAnnealingLR',
        by_epoch=False,
        begin=30,
        end=max_iters,
        T_max=max_iters - 30,
        eta_min=1e-5),
]
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(by_epoch=False, interval=max_iters, max_keep_ckpts=1),
    visualization=dict(score_thr=0.5))
log_processor = dict(by_epoch=False, window_size=10)
custom_hooks = [dict(type='TNSHook', interval=20)]
vis_backends = [
    dict(type='LocalVisBackend'),
    dict(type='TensorboardVisBackend'),
]
visualizer = dict(vis_backends=vis_backends)
randomness = dict(seed=0)
