"""Table 4, CIFAR-100: inputs of the adaptor and adaptors a to d, five runs each.

Its rows without and with StepNet are those of table1_cifar100.py.
"""
_base_ = './_base_/paper.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_stepnet_{name}_cifar100.py',
        paper=f'resnet164_stepnet_{name}_cifar100')
    for name in ('current', 'next', 'difference', 'adaptor_a', 'adaptor_b',
                 'adaptor_c', 'adaptor_d')
}
baselines = ['plain', 'stepnet']
