"""ResNet-164 + StepNet with longer schedule on CIFAR-10 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_stepnet_longer_cifar10.py
Result here: not yet run.

Twice the epochs, and the rate falls at twice the epochs: 328, at 162 and
244. The factor is ours. With other epochs (train_cfg.max_epochs in
--cfg-options) set param_scheduler.milestones too.
"""
_base_ = [
    '../resnet164/resnet164_stepnet_cifar10.py',
    '../_base_/tricks/longer.py',
]

train_cfg = dict(max_epochs=_base_.longer * _base_.train_cfg.max_epochs)
param_scheduler = dict(milestones=[
    _base_.longer * epoch for epoch in _base_.param_scheduler.milestones
])
