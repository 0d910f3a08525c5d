"""ResNet-164 + StepNet on CIFAR-10 (Table 1).

Paper: top-1 95.14 ± 0.24 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_cifar10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
