# Whole, without a base: it is the same whatever the installed libraries have.
default_scope = 'mmdet'
custom_imports = dict(imports='stepnet_mm')
classes = ('circle', 'square', 'triangle')
randomness = dict(seed=0)
model = dict(
    type='RetinaNet',
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[120.0] * 3, std=[60.0] * 3,
        pad_size_divisor=32),
    # A stage of three measured blocks, and residuals from the first iteration.
    backbone=dict(
        type='StepResNet', depth=34, zero_init_residual=False,
        out_indices=(2, 3), base_channels=2, stem_channels=4,
        frozen_stages=-1, norm_eval=False),
    neck=dict(type='FPN', in_channels=[8, 16], out_channels=8, num_outs=2),
    bbox_head=dict(
        type='RetinaHead', num_classes=3, in_channels=8, feat_channels=8,
        stacked_convs=1, bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
        anchor_generator=dict(
            type='AnchorGenerator', octave_base_scale=4, ratios=[1.0],
            scales_per_octave=1, strides=[16, 32])),
    train_cfg=dict(
        assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.4,
                      min_pos_iou=0),
        sampler=dict(type='PseudoSampler'), allowed_border=-1, pos_weight=-1,
        debug=False))
train_dataloader = dict(
    batch_size=2, num_workers=0, persistent_workers=False,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='CocoDataset', data_root='mini_coco/',
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'), metainfo=dict(classes=classes),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True),
            dict(type='Resize', scale=(64, 64)),
            dict(type='RandomFlip', prob=0.5),
            dict(type='PackDetInputs')]))
train_cfg = dict(type='IterBasedTrainLoop', max_iters=10, val_interval=100)
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9))
custom_hooks = [dict(type='TNSHook', interval=1)]
default_hooks = dict(
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=10),
    logger=dict(type='LoggerHook', interval=1))
log_level = 'ERROR'
visualizer = dict(
    type='DetLocalVisualizer', name='visualizer',
    vis_backends=[dict(type='LocalVisBackend')])
