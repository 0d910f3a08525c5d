"""Faster R-CNN R-50 FPN with StepNet on COCO, 1x schedule (Table 3).

Paper: AP 39.8, AP50 61.2, AP75 41.9, APS 23.8, APM 43.1, APL 51.0.
Command: python tools/train.py configs/faster_rcnn_r50_stepnet.py
Hardware: the 1x schedule means 8 GPUs x 2 images.
Result here: not yet run on COCO.

norm_eval=True comes with the base config and covers the adaptors' BatchNorm
too: its statistics stay at mean 0 and variance 1, its γ and β learn. With two
images a GPU a training BatchNorm over pooled values would be nearly a sign.
"""
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)

model = dict(
    backbone=dict(
        type='StepResNet',
        # The weights are a plain ResNet's: a step of 1 keeps its features.
        step=dict(type='StepAdaptor', init_step=1),
        # The stem only, so that the new steps of stage 1 learn too.
        frozen_stages=0))
custom_hooks = [
    dict(type='TNSHook', interval=50),
    dict(type='LoadReportHook'),
]
vis_backends = [
    dict(type='LocalVisBackend'),
    dict(type='TensorboardVisBackend'),
]
visualizer = dict(vis_backends=vis_backends)
