"""Some of cifar10_16px_modules.py for 15 epochs: do differences stay?"""
_base_ = './_base_/cifar10_16px.py'

START = 0.2689414213699951  # sigmoid(-1), where StepAdaptor starts
methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in ('plain', 'se', 'stepnet')
}
methods.update(
    constant=dict(
        config='../resnet164/resnet164_plain_cifar10.py',
        options={
            'model.backbone.step':
            dict(type='ConstantStep', value=START, _delete_=True)
        }))
options = {
    'train_cfg.max_epochs': 15,
    'param_scheduler': [
        dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=1,
             convert_to_iter_based=True),
        dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=15,
             T_max=14, convert_to_iter_based=True),
    ],
}
seconds = 3600
del START
