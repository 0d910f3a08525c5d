"""ResNet-164 + StepNet, F(x_{t+1}) on CIFAR-10 (Table 4).

Paper: top-1 94.32 ± 0.23 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_next_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='next')))
