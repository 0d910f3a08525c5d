"""ResNet-164 + StepNet, F(x_{t+1}) on CIFAR-100 (Table 4).

Paper: top-1 76.53 ± 0.04 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_next_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='next')))
