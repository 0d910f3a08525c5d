"""ResNet-34 on ImageNet-1k (Table 2).

Paper: top-1 73.99 ± 0.04 %.
Command: python tools/train.py configs/imagenet/resnet34_plain_imagenet.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet34_imagenet.py'

model = dict(backbone=dict(step=None))
