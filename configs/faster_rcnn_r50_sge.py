"""Faster R-CNN R-50 FPN + SGE on COCO (Table 3).

Paper: AP 38.9, AP50 60.0, AP75 42.0, APS 23.2, APM 41.9, APL 49.0.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r50_sge.py --launcher pytorch
Result here: not yet run.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet50_sge_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet50_sge_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r50_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='SGEAttention'),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet50_sge_imagenet/best.pth')))
