"""Table 7 at 16 px: ViT without and with StepNet, the configs' networks.

Patches of 4 x 4 pixels as there, so 16 tokens in the place of 64: with patches
of 2 x 2 a run takes four times as long, two hours on a core.
"""
_base_ = './_base_/cifar10_16px_data.py'

methods = {
    name: dict(
        config=f'../vit/vit_{name}_cifar10.py', paper=f'vit_{name}_cifar10')
    for name in ('plain', 'stepnet')
}
options = {'model.backbone.img_size': 16}
seconds = 1800  # on one core of two; plain takes twice as long as StepNet
