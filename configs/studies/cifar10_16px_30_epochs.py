"""Longer trainings: CIFAR-10 at 16 px, ResNet-56, 30 epochs."""
_base_ = './_base_/cifar10_16px.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in ('plain', 'stepnet')
}
methods['constant'] = dict(
    config='../resnet164/resnet164_plain_cifar10.py',
    options={'model.backbone.step': dict(type='ConstantStep', _delete_=True)})
methods['last_gamma'] = dict(config='_base_/resnet164_last_gamma.py')
options = {
    'train_cfg.max_epochs': 30,
    'param_scheduler': [
        dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=1,
             convert_to_iter_based=True),
        dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=30,
             T_max=29, convert_to_iter_based=True),
    ],
}
measure = dict(robustness=True)
