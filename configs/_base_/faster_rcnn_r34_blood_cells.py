# The demo's narrow detector on own data, which takes the first part: where they
# are, their classes, their size.
_base_ = '../faster_rcnn_r34_stepnet_mini_coco.py'

# Own data.
data_root = 'data/blood_cells/'
metainfo = dict(
    classes=('RBC', 'WBC', 'Platelets'),
    palette=[(220, 20, 60), (0, 60, 220), (255, 200, 0)])
scale = (320, 240)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(
        type='RandomFlip',
        prob=[0.25, 0.25, 0.25],
        direction=['horizontal', 'vertical', 'diagonal']),
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
dataset = dict(
    data_root=data_root,
    metainfo=metainfo,
    data_prefix=dict(img='images/'))
train_dataloader = dict(
    dataset=dict(
        ann_file='train.json', pipeline=train_pipeline, **dataset))
val_dataloader = dict(
    dataset=dict(ann_file='val.json', pipeline=test_pipeline, **dataset))
test_dataloader = dict(
    dataset=dict(ann_file='test.json', pipeline=test_pipeline, **dataset))
val_evaluator = dict(ann_file=data_root + 'val.json', classwise=True)
test_evaluator = dict(ann_file=data_root + 'test.json', classwise=True)

# Up to 30 objects an image.
model = dict(
    train_cfg=dict(
        rpn_proposal=dict(nms_pre=400, max_per_img=200),
        rcnn=dict(sampler=dict(num=128))),
    test_cfg=dict(rpn=dict(nms_pre=400, max_per_img=200)))

max_iters = 1500
train_cfg = dict(max_iters=max_iters, val_interval=500)
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
auto_scale_lr = dict(base_batch_size=16)  # not used; as in the records
default_hooks = dict(
    # Evaluations are logged by their iteration.
    logger=dict(log_metric_by_epoch=False),
    checkpoint=dict(interval=500, save_best='coco/bbox_mAP', rule='greater'))
