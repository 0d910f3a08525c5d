"""ResNet-101 + StepNet on ImageNet-1k (no row of the paper).

Paper: no figure.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet101_stepnet_imagenet.py --launcher pytorch
Result here: not yet run.

Not a row of the paper: the backbone weights that Table 3's R-101 starts from.
"""
_base_ = '../_base_/resnet101_imagenet.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
