_base_ = './faster_rcnn_r50_coco.py'

model = dict(
    backbone=dict(
        depth=34, init_cfg=dict(checkpoint='torchvision://resnet34')),
    neck=dict(in_channels=[64, 128, 256, 512]))
