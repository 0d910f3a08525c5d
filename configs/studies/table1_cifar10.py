"""Table 1, CIFAR-10: ResNet-164 and eight modules, five runs each."""
_base_ = './_base_/paper.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in ('plain', 'se', 'cbam', 'eca', 'sem', 'srm', 'fca', 'iebn',
                 'stepnet')
}
