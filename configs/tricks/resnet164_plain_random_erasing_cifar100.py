"""ResNet-164 with random erasing on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_random_erasing_cifar100.py
Result here: not yet run.

Zhong et al., AAAI 2020: with probability 0.5, a rectangle of 2 to 40 % of
the image, sides 3 : 10 to 10 : 3, becomes random values (RE-R).
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/random_erasing.py',
]

train_dataloader = dict(
    dataset=dict(pipeline=[
        *_base_.train_dataloader.dataset.pipeline[:-1],
        _base_.random_erasing,
        dict(type='PackInputs'),
    ]))
