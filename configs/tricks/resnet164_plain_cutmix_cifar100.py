"""ResNet-164 with CutMix on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_cutmix_cifar100.py
Result here: not yet run.

Yun et al., ICCV 2019: a rectangle comes from another image of the batch,
and labels are mixed by area, in a ratio from Beta(1, 1), in every second
batch (probability 0.5), as there on CIFAR.
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/cutmix.py',
]

model = dict(train_cfg=_base_.cutmix)
