"""ResNet-164 on CIFAR-100 (Table 1).

Paper: top-1 74.30 ± 0.30 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_plain_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=None))
