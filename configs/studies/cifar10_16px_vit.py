"""Table 7 at 16 px: ViT without and with StepNet, on 8 x 8 patches as there."""
_base_ = './_base_/cifar10_16px_data.py'

methods = {
    name: dict(
        config=f'../vit/vit_{name}_cifar10.py', paper=f'vit_{name}_cifar10')
    for name in ('plain', 'stepnet')
}
options = {'model.backbone.img_size': 16, 'model.backbone.patch_size': 2}
seconds = 7000  # by the first halves of two runs, on one core of two
