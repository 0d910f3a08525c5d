"""ResNet-34 + StepNet on ImageNet-1k (Table 2).

Paper: top-1 75.01 ± 0.09 %.
Command: python tools/train.py configs/imagenet/resnet34_stepnet_imagenet.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet34_imagenet.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
