"""No warm-up: CIFAR-10 at 16 px, ResNet-164, 2 epochs."""
_base_ = './_base_/cifar10_16px_two_epochs.py'

PLAIN, STEPNET = (
    f'../resnet164/resnet164_{name}_cifar10.py'
    for name in ('plain', 'stepnet'))
methods = dict(
    plain=dict(config=PLAIN),
    plain_zero_init=dict(
        config=PLAIN, options={'model.backbone.zero_init_residual': True}),
    constant=dict(
        config=PLAIN,
        options={
            'model.backbone.step': dict(type='ConstantStep', _delete_=True)
        }),
    stepnet=dict(config=STEPNET))
options = {'model.backbone.depth': 164}
del PLAIN, STEPNET
