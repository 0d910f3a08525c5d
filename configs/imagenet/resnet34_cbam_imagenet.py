"""ResNet-34 + CBAM on ImageNet-1k (Table 2).

Paper: top-1 74.89 ± 0.11 %.
Command: python tools/train.py configs/imagenet/resnet34_cbam_imagenet.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet34_imagenet.py'

model = dict(backbone=dict(step=dict(type='CBAMAttention')))
