"""ResNet-164 with cutout on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_cutout_cifar100.py
Result here: not yet run.

DeVries and Taylor 2017: a square around a random pixel becomes the mean
colour, 16 x 16 px on CIFAR-10, 8 x 8 px on CIFAR-100, in every image.
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/cutout.py',
]

train_dataloader = dict(
    dataset=dict(pipeline=[
        *_base_.train_dataloader.dataset.pipeline[:-1],
        _base_.cutout_8,
        dict(type='PackInputs'),
    ]))
