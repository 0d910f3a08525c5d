"""ResNet-164 + IEBN on CIFAR-10 (Table 1).

Paper: top-1 94.70 ± 0.13 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_iebn_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(
    backbone=dict(
        step=None,
        norm_cfg=dict(type='IEBN'),
        downsample_norm_cfg=dict(type='BN')))
