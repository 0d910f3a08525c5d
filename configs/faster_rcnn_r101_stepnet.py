"""Faster R-CNN R-101 FPN with StepNet on COCO, 1x schedule (Table 3).

Paper: AP 41.9, AP50 62.6, AP75 44.4, APS 25.4, APM 46.8, APL 53.2.
Command: python tools/train.py configs/faster_rcnn_r101_stepnet.py
Hardware: the 1x schedule means 8 GPUs x 2 images.
Result here: not yet run on COCO.
"""
_base_ = './faster_rcnn_r50_stepnet.py'

model = dict(
    backbone=dict(
        depth=101,
        init_cfg=dict(
            type='Pretrained', checkpoint='torchvision://resnet101')))
