"""No warm-up, two rates: CIFAR-10 at 16 px, ResNet-56, 2 epochs."""
_base_ = './_base_/cifar10_16px.py'

PLAIN, SE, STEPNET, PREACT = (
    f'../resnet164/resnet164_{name}_cifar10.py'
    for name in ('plain', 'se', 'stepnet', 'preact_plain'))
CONSTANT = dict(type='ConstantStep', _delete_=True)
methods = {
    f'{name}_lr_{lr:02}': dict(
        config=config,
        options={'optim_wrapper.optimizer.lr': lr / 10, **options},
        baseline=None if name == 'plain' else f'plain_lr_{lr:02}')
    for lr in (1, 4)
    for name, config, options in (
        ('plain', PLAIN, {}),
        ('plain_zero_init', PLAIN,
         {'model.backbone.zero_init_residual': True}),
        ('constant', PLAIN, {'model.backbone.step': CONSTANT}),
        ('last_gamma', '_base_/resnet164_last_gamma.py', {}),
        ('stepnet', STEPNET, {}),
        ('se', SE, {}),
        ('preact_plain', PREACT, {}))
}
options = {
    'train_cfg.max_epochs': 2,
    'param_scheduler': [
        dict(type='CosineAnnealingLR', by_epoch=True, end=2, T_max=2,
             convert_to_iter_based=True)
    ],
}
pooled = False  # plain diverges at the higher rate, or nearly
del PLAIN, SE, STEPNET, PREACT, CONSTANT
