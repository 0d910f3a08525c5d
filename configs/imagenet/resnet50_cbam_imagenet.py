"""ResNet-50 + CBAM on ImageNet-1k (Table 2).

Paper: top-1 76.38 ± 0.10 %.
Command: python tools/train.py configs/imagenet/resnet50_cbam_imagenet.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet50_imagenet.py'

model = dict(backbone=dict(step=dict(type='CBAMAttention')))
