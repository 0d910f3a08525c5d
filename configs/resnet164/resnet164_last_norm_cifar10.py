"""ResNet-164 on CIFAR-10, residuals scaled by 0.27 at the start (no row of the paper).

Paper: no figure.
Command: python tools/train.py configs/resnet164/resnet164_last_norm_cifar10.py
Result here: not yet run.

LastNorm is an initialisation, for a training from scratch: what in five
epochs of a smaller network was best (docs/results.md).
"""
_base_ = './resnet164_plain_cifar10.py'

model = dict(backbone=dict(init_cfg=[
    dict(type='Kaiming', layer='Conv2d'),
    dict(type='Constant', val=1, layer=['_BatchNorm', 'GroupNorm']),
    dict(type='LastNorm', val=0.27),
]))
