"""ResNet-164 + StepNet with mixup on CIFAR-10 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_stepnet_mixup_cifar10.py
Result here: not yet run.

Zhang et al., ICLR 2018: images and labels of each batch are mixed in pairs
in a ratio from Beta(1, 1), as there on CIFAR.
"""
_base_ = [
    '../resnet164/resnet164_stepnet_cifar10.py',
    '../_base_/tricks/mixup.py',
]

model = dict(train_cfg=_base_.mixup)
