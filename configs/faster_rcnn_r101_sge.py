"""Faster R-CNN R-101 FPN + SGE on COCO (Table 3).

Paper: AP 40.2, AP50 61.4, AP75 43.2, APS 24.1, APM 44.5, APL 51.2.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_sge.py --launcher pytorch
Result here: not yet run.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet101_sge_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet101_sge_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='SGEAttention'),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet101_sge_imagenet/best.pth')))
