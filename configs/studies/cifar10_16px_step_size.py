"""Step sizes: CIFAR-10 at 16 px, ResNet-56, 5 epochs.

A constant Δt from 0.05 to 0.7, and a start of γ. 1 is `plain` and 0.27
`constant` of cifar10_16px_modules.py, whose setting this is. `last_gamma` is
plain with the last γ of a residual at 0.27 and β at 0, in the blocks that
`constant` damps: f starts alike in both, only the constant's gradient stays
scaled.
"""
_base_ = './_base_/cifar10_16px.py'

PLAIN = '../resnet164/resnet164_plain_cifar10.py'
methods = {
    f'constant_{round(100 * value):03}': dict(
        config=PLAIN,
        options={
            'model.backbone.step':
            dict(type='ConstantStep', value=value, _delete_=True)
        })
    for value in (.05, .1, .2, .4, .5, .7)
}
methods['last_gamma'] = dict(config='_base_/resnet164_last_gamma.py')
baselines = ['plain', 'constant']
del PLAIN
