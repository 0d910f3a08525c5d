"""Table 7, CIFAR-10: ViT without and with StepNet, five runs each."""
_base_ = './_base_/paper.py'

methods = {
    name: dict(
        config=f'../vit/vit_{name}_cifar10.py', paper=f'vit_{name}_cifar10')
    for name in ('plain', 'stepnet')
}
