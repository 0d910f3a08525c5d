# Plain with the last γ of the blocks that `constant` damps at 0.27, β at 0.
_base_ = '../../resnet164/resnet164_plain_cifar10.py'

model = dict(backbone=dict(init_cfg=[
    dict(type='Kaiming', layer=['Conv2d']),
    dict(type='Constant', val=1, layer=['_BatchNorm', 'GroupNorm']),
    dict(type='LastNorm', val=0.2689414213699951),
]))
