"""Longer trainings: CIFAR-10 at 16 px, ResNet-56, 15 epochs."""
_base_ = './_base_/cifar10_16px_four.py'

methods = dict(last_gamma=dict(config='_base_/resnet164_last_gamma.py'))
options = {
    'train_cfg.max_epochs': 15,
    'param_scheduler': [
        dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=1,
             convert_to_iter_based=True),
        dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=15,
             T_max=14, convert_to_iter_based=True),
    ],
}
