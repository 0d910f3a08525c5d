"""CIFAR-10 in full: ResNet-164 by the paper's recipe, 164 epochs.

Rows of Table 1 and two controls, in the order in which a short time on a GPU
is spent. `constant` and `last_gamma` are those of the studies at 16 px.
"""
_base_ = './_base_/paper.py'

PLAIN, STEPNET, SE = (
    f'../resnet164/resnet164_{name}_cifar10.py'
    for name in ('plain', 'stepnet', 'se'))
methods = dict(
    plain=dict(config=PLAIN, paper='resnet164_plain_cifar10'),
    stepnet=dict(config=STEPNET, paper='resnet164_stepnet_cifar10'),
    last_gamma=dict(config='_base_/resnet164_last_gamma.py'),
    constant=dict(
        config=PLAIN,
        options={
            'model.backbone.step':
            dict(
                type='ConstantStep', value=0.2689414213699951, _delete_=True)
        }),
    se=dict(config=SE, paper='resnet164_se_cifar10'))
del PLAIN, STEPNET, SE
