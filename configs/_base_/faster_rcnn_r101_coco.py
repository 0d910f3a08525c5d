_base_ = './faster_rcnn_r50_coco.py'

model = dict(
    backbone=dict(
        depth=101, init_cfg=dict(checkpoint='torchvision://resnet101')))
