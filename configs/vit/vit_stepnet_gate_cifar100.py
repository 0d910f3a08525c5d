"""ViT + StepNet behind the attention on CIFAR-100 (no row of the paper).

Paper: no figure.
Command: python tools/train.py configs/vit/vit_stepnet_gate_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/vit_cifar100.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor'), step_mode='gate'))
