"""ResNet-164 + StepNet, F(x_{t+1} - x_t) on CIFAR-100 (Table 4).

Paper: top-1 76.42 ± 0.10 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_difference_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='difference')))
