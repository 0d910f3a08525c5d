"""SelfAttentionNet + StepNet on CIFAR-10 (Cordonnier et al. 2020).

Paper: no figure.
Command: python tools/train.py configs/self_attention/self_attention_stepnet_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/self_attention_cifar10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
