# Two epochs without warm-up: which networks start at all?
_base_ = './cifar10_16px.py'

options = {
    'train_cfg.max_epochs': 2,
    'param_scheduler': [
        dict(type='CosineAnnealingLR', by_epoch=True, end=2, T_max=2,
             convert_to_iter_based=True)
    ],
}
