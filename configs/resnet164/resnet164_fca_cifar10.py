"""ResNet-164 + FCA on CIFAR-10 (Table 1).

Paper: top-1 94.66 ± 0.12 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_fca_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(
    backbone=dict(
        step=[
            dict(type='FCAAttention', dct_size=size, bias=True)
            for size in (32, 16, 8)
        ]))
