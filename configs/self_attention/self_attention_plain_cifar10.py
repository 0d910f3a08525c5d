"""SelfAttentionNet on CIFAR-10 (Cordonnier et al. 2020).

Paper: top-1 94 % in an article on it.
Command: python tools/train.py configs/self_attention/self_attention_plain_cifar10.py
Result here: not yet run in full.
"""
_base_ = '../_base_/self_attention_cifar10.py'

model = dict(backbone=dict(step=None))
