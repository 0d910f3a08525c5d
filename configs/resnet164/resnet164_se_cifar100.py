"""ResNet-164 + SE on CIFAR-100 (Table 1).

Paper: top-1 75.25 ± 0.31 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_se_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=dict(type='SEAttention')))
