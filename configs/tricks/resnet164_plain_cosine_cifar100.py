"""ResNet-164 with cosine schedule on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_cosine_cifar100.py
Result here: not yet run.

Loshchilov and Hutter, ICLR 2017: the learning rate falls from 0.1 to 0 as
half a cosine over all iterations, without restarts. With other epochs
(train_cfg.max_epochs in --cfg-options) set param_scheduler.T_max too.
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/cosine.py',
]

param_scheduler = dict(
    _delete_=True, T_max=_base_.train_cfg.max_epochs, **_base_.cosine)
