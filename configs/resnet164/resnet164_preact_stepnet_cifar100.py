"""ResNet-164 + StepNet, pre-activation on CIFAR-100 (no row of the paper).

Paper: no figure.
Command: python tools/train.py configs/resnet164/resnet164_preact_stepnet_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(
    backbone=dict(
        preact=True, step=dict(type='StepAdaptor'), step_blocks='all'))
