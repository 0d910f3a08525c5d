"""Table 4, STL-10: inputs of the adaptor and adaptors a to d, five runs each.

Its rows without and with StepNet are those of table1_stl10.py.
"""
_base_ = './_base_/paper.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_stepnet_{name}_stl10.py',
        paper=f'resnet164_stepnet_{name}_stl10')
    for name in ('current', 'next', 'difference', 'adaptor_a', 'adaptor_b',
                 'adaptor_c', 'adaptor_d')
}
baselines = ['plain', 'stepnet']
