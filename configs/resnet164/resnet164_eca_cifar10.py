"""ResNet-164 + ECA on CIFAR-10 (Table 1).

Paper: top-1 94.15 ± 0.23 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_eca_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='ECAAttention')))
