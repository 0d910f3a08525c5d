"""Table 7, CIFAR-100: ViT without and with StepNet, five runs each."""
_base_ = './_base_/paper.py'

methods = {
    name: dict(
        config=f'../vit/vit_{name}_cifar100.py', paper=f'vit_{name}_cifar100')
    for name in ('plain', 'stepnet')
}
