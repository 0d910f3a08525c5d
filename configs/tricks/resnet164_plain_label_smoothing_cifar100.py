"""ResNet-164 with label smoothing on CIFAR-100 (Fig. 8).

Paper: TNS in a figure, no accuracy.
Command: python tools/train.py configs/tricks/resnet164_plain_label_smoothing_cifar100.py
Result here: not yet run.

Szegedy et al., CVPR 2016: 0.1 of each label is spread over all classes.
"""
_base_ = [
    '../resnet164/resnet164_plain_cifar100.py',
    '../_base_/tricks/label_smoothing.py',
]

model = dict(head=dict(loss=dict(_delete_=True, **_base_.label_smoothing)))
