"""Fig. 8, CIFAR-10: nine training tricks, without and with StepNet, five runs each.

Its rows without a trick are those of table1_cifar10.py. The paper names
neither its tricks nor a number: these are ours.
"""
_base_ = './_base_/paper.py'

methods = {
    f'{name}_{trick}': dict(
        config=f'../tricks/resnet164_{name}_{trick}_cifar10.py',
        paper=f'resnet164_{name}_{trick}_cifar10',
        **(dict(baseline=f'plain_{trick}') if name == 'stepnet' else {}))
    for trick in ('label_smoothing', 'mixup', 'cutmix', 'cutout',
                  'random_erasing', 'auto_augment', 'cosine', 'longer', 'ema')
    for name in ('plain', 'stepnet')
}
baselines = ['plain', 'stepnet']
