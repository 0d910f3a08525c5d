"""ResNet-50 + StepNet on ImageNet-1k (Table 2).

Paper: top-1 77.52 ± 0.04 %.
Command: python tools/train.py configs/imagenet/resnet50_stepnet_imagenet.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet50_imagenet.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
