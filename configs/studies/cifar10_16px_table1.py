"""Table 1 as far as a CPU reaches: CIFAR-10 at 16 px, ResNet-56."""
_base_ = './_base_/cifar10_16px.py'

methods = {
    name: dict(
        config=f'../resnet164/resnet164_{name}_cifar10.py',
        paper=f'resnet164_{name}_cifar10')
    for name in ('plain', 'se', 'stepnet', 'eca', 'cbam', 'srm', 'fca',
                 'iebn', 'sem')
}
