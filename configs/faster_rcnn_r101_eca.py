"""Faster R-CNN R-101 FPN + ECA on COCO (Table 3).

Paper: AP 40.4, AP50 62.7, AP75 44.5, APS 24.1, APM 45.1, APL 51.8.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_eca.py --launcher pytorch
Result here: not yet run.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet101_eca_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet101_eca_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(
    backbone=dict(
        step=[dict(type='ECAAttention', kernel_size=k) for k in (3, 3, 5, 7)],
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet101_eca_imagenet/best.pth')))
