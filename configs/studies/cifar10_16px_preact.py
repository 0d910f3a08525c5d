"""Pre-activation at 16 px, without and with StepNet (no table of the paper).

The same two with post-activation are in cifar10_16px_modules.py.
"""
_base_ = './_base_/cifar10_16px.py'

methods = {
    f'preact_{name}': dict(
        config=f'../resnet164/resnet164_preact_{name}_cifar10.py',
        baseline='preact_plain' if name == 'stepnet' else 'plain')
    for name in ('plain', 'stepnet')
}
baselines = ['plain', 'stepnet']
