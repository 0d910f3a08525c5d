"""Faster R-CNN R-101 FPN + StepNet (from StepNet weights) on COCO (Table 3).

Paper: AP 41.9, AP50 62.6, AP75 44.4, APS 25.4, APM 46.8, APL 53.2.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_stepnet_from_stepnet.py --launcher pytorch
Result here: not yet run.

On equal terms with SE, ECA and SGE: the steps come trained, and stem and
stage 1 are frozen (frozen_stages=1, of the base config). norm_eval=True keeps
the adaptors' BatchNorm at the statistics from ImageNet. The paper does not
say how its detector starts; faster_rcnn_r101_stepnet.py starts from a plain
ResNet's weights.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet101_stepnet_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet101_stepnet_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='StepAdaptor'),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet101_stepnet_imagenet/best.pth')))
