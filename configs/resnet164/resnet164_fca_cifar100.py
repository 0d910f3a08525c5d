"""ResNet-164 + FCA on CIFAR-100 (Table 1).

Paper: top-1 76.52 ± 0.19 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_fca_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(
    backbone=dict(
        step=[
            dict(type='FCAAttention', dct_size=size, bias=True)
            for size in (32, 16, 8)
        ]))
