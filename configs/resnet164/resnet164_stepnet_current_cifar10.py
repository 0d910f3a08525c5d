"""ResNet-164 + StepNet, F(x_t) on CIFAR-10 (Table 4).

Paper: top-1 94.59 ± 0.14 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_current_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='current')))
