"""ResNet-164 + SEM on CIFAR-10 (Table 1).

Paper: top-1 94.52 ± 0.11 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_sem_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='SEMAttention')))
