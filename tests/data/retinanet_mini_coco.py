classes = (
    'circle',
    'square',
    'triangle',
)
custom_hooks = [
    dict(interval=1, type='TNSHook'),
    dict(type='LoadReportHook'),
    dict(type='BrokenImageHook'),
    dict(type='PreemptionHook'),
    dict(type='NonFiniteLossHook'),
]
custom_imports = dict(imports='stepnet_mm')
data_root = 'mini_coco/'
default_hooks = dict(
    checkpoint=dict(
        _scope_='mmdet',
        by_epoch=False,
        interval=2,
        type='AtomicCheckpointHook'),
    logger=dict(_scope_='mmdet', interval=1, type='LoggerHook'),
    param_scheduler=dict(_scope_='mmdet', type='ParamSchedulerHook'),
    sampler_seed=dict(_scope_='mmdet', type='DistSamplerSeedHook'),
    timer=dict(_scope_='mmdet', type='IterTimerHook'),
    visualization=dict(_scope_='mmdet', type='DetVisualizationHook'))
default_scope = 'mmdet'
env_cfg = dict(
    cudnn_benchmark=False,
    dist_cfg=dict(backend='nccl'),
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0))
launcher = 'none'
load_from = None
log_level = 'INFO'
log_processor = dict(
    _scope_='mmdet', by_epoch=True, type='LogProcessor', window_size=50)
model = dict(
    backbone=dict(
        base_channels=2,
        depth=18,
        frozen_stages=-1,
        norm_eval=False,
        num_stages=4,
        out_indices=(
            2,
            3,
        ),
        stem_channels=4,
        type='StepResNet'),
    bbox_head=dict(
        anchor_generator=dict(
            octave_base_scale=4,
            ratios=[
                1.0,
            ],
            scales_per_octave=1,
            strides=[
                16,
                32,
            ],
            type='AnchorGenerator'),
        bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
        feat_channels=8,
        in_channels=8,
        num_classes=3,
        stacked_convs=1,
        type='RetinaHead'),
    data_preprocessor=dict(
        mean=[
            120.0,
            120.0,
            120.0,
        ],
        pad_size_divisor=32,
        std=[
            60.0,
            60.0,
            60.0,
        ],
        type='DetDataPreprocessor'),
    neck=dict(in_channels=[
        8,
        16,
    ], num_outs=2, out_channels=8, type='FPN'),
    test_cfg=dict(
        max_per_img=10,
        min_bbox_size=0,
        nms=dict(iou_threshold=0.5, type='nms'),
        nms_pre=100,
        score_thr=0.05),
    train_cfg=dict(
        allowed_border=-1,
        assigner=dict(
            min_pos_iou=0,
            neg_iou_thr=0.4,
            pos_iou_thr=0.5,
            type='MaxIoUAssigner'),
        debug=False,
        pos_weight=-1,
        sampler=dict(type='PseudoSampler')),
    type='RetinaNet')
optim_wrapper = dict(
    optimizer=dict(lr=0.01, momentum=0.9, type='SGD'), type='OptimWrapper')
randomness = dict(seed=0)
resume = False
train_cfg = dict(
    max_iters=4, type='ResumableIterBasedTrainLoop', val_interval=100)
train_dataloader = dict(
    batch_size=2,
    dataset=dict(
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'),
        data_root='mini_coco/',
        metainfo=dict(classes=(
            'circle',
            'square',
            'triangle',
        )),
        pipeline=[
            dict(type='LoadIntactImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True),
            dict(scale=(
                64,
                64,
            ), type='Resize'),
            dict(prob=0.5, type='RandomFlip'),
            dict(type='PackDetInputs'),
        ],
        type='CocoDataset'),
    num_workers=0,
    persistent_workers=False,
    sampler=dict(shuffle=True, type='InfiniteSampler'))
vis_backends = [
    dict(_scope_='mmdet', type='LocalVisBackend'),
]
visualizer = dict(
    _scope_='mmdet',
    name='visualizer',
    type='DetLocalVisualizer',
    vis_backends=[
        dict(type='LocalVisBackend'),
    ])
work_dir = 'work_dirs/retinanet_mini_coco'
