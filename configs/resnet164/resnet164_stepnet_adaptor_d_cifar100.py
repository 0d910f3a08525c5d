"""ResNet-164 + StepNet, adaptor d (softmax) on CIFAR-100 (Table 4).

Paper: top-1 76.83 ± 0.14 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_adaptor_d_cifar100.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=dict(type='SoftmaxStepAdaptor')))
