"""ResNet-164 + StepNet with averaged weights on CIFAR-10 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_stepnet_ema_cifar10.py
Result here: not yet run.

Polyak and Juditsky 1992, as an exponential moving average (EMA) of all
weights and of BatchNorm's statistics with momentum 0.0002, mmengine's
default. Validation and checkpoints have the average, so TNS of a checkpoint
is that of the average; TNSHook measures the weights that are trained.
"""
_base_ = [
    '../resnet164/resnet164_stepnet_cifar10.py',
    '../_base_/tricks/ema.py',
]

custom_hooks = [*_base_.custom_hooks, _base_.ema]
