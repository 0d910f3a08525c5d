"""ResNet-164 + SE on CIFAR-10 (Table 1).

Paper: top-1 94.26 ± 0.14 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_se_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='SEAttention')))
