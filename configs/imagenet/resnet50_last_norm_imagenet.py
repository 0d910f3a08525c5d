"""ResNet-50 on ImageNet-1k, residuals scaled by 0.27 at the start (no row of the paper).

Paper: no figure.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet50_last_norm_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = './resnet50_plain_imagenet.py'

model = dict(backbone=dict(zero_init_residual=False, init_cfg=[
    dict(type='Kaiming', layer='Conv2d'),
    dict(type='Constant', val=1, layer=['_BatchNorm', 'GroupNorm']),
    dict(type='LastNorm', val=0.27),
]))
