"""ResNet-18 on CIFAR-10 (Cordonnier et al. 2020).

Paper: no figure.
Command: python tools/train.py configs/self_attention/resnet18_plain_cifar10.py
Result here: not yet run in full.
"""
_base_ = '../_base_/resnet18_cifar10.py'
