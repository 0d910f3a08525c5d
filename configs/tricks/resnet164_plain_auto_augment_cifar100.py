"""ResNet-164 with AutoAugment on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_auto_augment_cifar100.py
Result here: not yet run.

Cubuk et al., CVPR 2019: the policy for CIFAR-10, which they use on CIFAR-100
too, after crop and flip; the cutout that they add is a trick of its own here.
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/auto_augment.py',
]

train_dataloader = dict(
    dataset=dict(pipeline=[
        *_base_.train_dataloader.dataset.pipeline[:-1],
        _base_.auto_augment,
        dict(type='PackInputs'),
    ]))
