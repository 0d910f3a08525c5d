"""ResNet-164 on CIFAR-10 (Table 1).

Paper: top-1 93.35 ± 0.18 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_plain_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=None))
