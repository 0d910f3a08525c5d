"""Inputs of the adaptor (Table 4): CIFAR-10 at 16 px, ResNet-56, 5 epochs.

Its rows without and with StepNet are those of cifar10_16px_modules.py.
"""
_base_ = './_base_/cifar10_16px.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_stepnet_{name}_cifar10.py',
        paper=f'resnet164_stepnet_{name}_cifar10')
    for name in ('current', 'next', 'difference', 'adaptor_a', 'adaptor_b',
                 'adaptor_c', 'adaptor_d')
}
baselines = ['plain', 'stepnet', 'constant']
