"""Faster R-CNN R-101 FPN + SE on COCO (Table 3).

Paper: AP 39.8, AP50 61.2, AP75 43.4, APS 23.6, APM 44.2, APL 51.1.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_se.py --launcher pytorch
Result here: not yet run.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet101_se_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet101_se_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='SEAttention'),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet101_se_imagenet/best.pth')))
