_base_ = './faster_rcnn_r34_coco.py'

model = dict(
    backbone=dict(
        depth=18, init_cfg=dict(checkpoint='torchvision://resnet18')))
