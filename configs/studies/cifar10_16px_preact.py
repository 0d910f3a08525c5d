"""Pre-activation: CIFAR-10 at 16 px, ResNet-56, 5 epochs.

Plain, StepNet and a constant Δt; no table of the paper. The same three with
post-activation are in cifar10_16px_modules.py. Here Δt is in all blocks, there
in those with an identity shortcut.
"""
_base_ = './_base_/cifar10_16px.py'

methods = {
    f'preact_{name}': dict(
        config=f'../resnet164/resnet164_preact_{name}_cifar10.py',
        baseline='preact_plain' if name == 'stepnet' else 'plain')
    for name in ('plain', 'stepnet')
}
methods['preact_constant'] = dict(
    config='../resnet164/resnet164_preact_stepnet_cifar10.py',
    options={'model.backbone.step': dict(type='ConstantStep', _delete_=True)},
    baseline='preact_plain')
baselines = ['plain', 'stepnet']
