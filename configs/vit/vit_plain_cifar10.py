"""ViT on CIFAR-10 (Table 7).

Paper: top-1 89.08 ± 0.84 %, 5 runs.
Command: python tools/train.py configs/vit/vit_plain_cifar10.py
Result here: not yet run.

This ViT is ours: the paper gives neither the size nor the training recipe of
its own (docs/deviations.md). The accuracy that the paper gives is that of its
own ViT.
"""
_base_ = '../_base_/vit_cifar10.py'

model = dict(backbone=dict(step=None))
