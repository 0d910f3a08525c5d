"""A small ViT (Table 7): CIFAR-10 at 16 px, 5 epochs.

Patches of 4 x 4 pixels as there, so 16 tokens in the place of 64, whose
iterations take about four times as long.
"""
_base_ = './_base_/cifar10_16px_data.py'

methods = {
    name: dict(
        config=f'../vit/vit_{name}_cifar10.py', paper=f'vit_{name}_cifar10')
    for name in ('plain', 'stepnet')
}
options = {'model.backbone.img_size': 16}

# Two methods, of unequal standard deviations.
pooled = False
