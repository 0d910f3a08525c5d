"""Faster R-CNN R-50 FPN + SE on COCO (Table 3).

Paper: AP 38.3, AP50 60.1, AP75 41.5, APS 23.0, APM 42.1, APL 49.2.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r50_se.py --launcher pytorch
Result here: not yet run.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet50_se_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet50_se_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r50_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='SEAttention'),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet50_se_imagenet/best.pth')))
