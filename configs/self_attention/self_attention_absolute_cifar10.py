"""SelfAttentionNet by content and absolute positions on CIFAR-10 (Cordonnier et al. 2020).

Paper: no figure.
Command: python tools/train.py configs/self_attention/self_attention_absolute_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/self_attention_cifar10.py'

model = dict(
    backbone=dict(
        attention=dict(encoding='absolute', max_size=16, content=True)))
