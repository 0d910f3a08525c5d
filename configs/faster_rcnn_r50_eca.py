"""Faster R-CNN R-50 FPN + ECA on COCO (Table 3).

Paper: AP 38.5, AP50 60.4, AP75 41.5, APS 23.2, APM 42.2, APL 48.9.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r50_eca.py --launcher pytorch
Result here: not yet run.

k = 5 in every stage, as in the detector that ECA's authors publish; their
ImageNet network has 3-5-5-7.

The backbone starts from weights trained with the module: the best epoch of
`tools/train.py configs/imagenet/resnet50_eca_k5_imagenet.py`. Its file is
named after the epoch, so give it the name that stands below:
(cd work_dirs/resnet50_eca_k5_imagenet && cp best_*.pth best.pth)
Other weights: --cfg-options model.backbone.init_cfg.checkpoint=FILE.
"""
_base_ = './_base_/faster_rcnn_r50_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='ECAAttention', kernel_size=5),
        init_cfg=dict(
            prefix='backbone.',
            checkpoint='work_dirs/resnet50_eca_k5_imagenet/best.pth')))
