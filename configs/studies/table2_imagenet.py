"""Table 2: ResNet-34 and ResNet-50 on ImageNet, three runs each."""
_base_ = './_base_/paper.py'

methods = {
    f'resnet{depth}_{name}': dict(
        config=f'../imagenet/resnet{depth}_{name}_imagenet.py',
        paper=f'resnet{depth}_{name}_imagenet')
    for depth in (34, 50)
    for name in ('plain', 'se', 'eca', 'cbam', 'srm', 'fca', 'sge', 'stepnet')
}
seeds = [0, 1, 2]
