"""SelfAttentionNet of 16 heads on CIFAR-10 (Cordonnier et al. 2020).

Paper: no figure.
Command: python tools/train.py configs/self_attention/self_attention_16_heads_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/self_attention_cifar10.py'

model = dict(backbone=dict(num_heads=16))
