"""Four training tricks (Fig. 8): CIFAR-10 at 16 px, ResNet-56, 5 epochs.

Its rows without a trick are those of cifar10_16px_modules.py, whose schedule
is a cosine already. Weights are averaged over about 150 iterations, here as in
the config a twelfth of the training; over the 5,000 of the config, 5 epochs
would leave mostly the weights of the start.
"""
_base_ = './_base_/cifar10_16px.py'

methods = {
    f'{name}_{trick}': dict(
        config=f'../tricks/resnet164_{name}_{trick}_cifar10.py',
        options={'custom_hooks.1.momentum': 1 / 150} if trick == 'ema' else {},
        paper=f'resnet164_{name}_{trick}_cifar10',
        **(dict(baseline=f'plain_{trick}') if name == 'stepnet' else {}))
    for trick in ('label_smoothing', 'mixup', 'cutmix', 'ema')
    for name in ('plain', 'stepnet')
}
baselines = ['plain', 'stepnet']
pooled = False
