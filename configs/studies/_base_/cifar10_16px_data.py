# What a CPU can do of Tables 1, 4 and 7: CIFAR-10 reduced to 16 px, 5 epochs.
options = {
    'train_dataloader.dataset.pipeline': [
        dict(type='Resize', scale=16, interpolation='area'),
        dict(type='RandomCrop', crop_size=16, padding=2),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
        dict(type='PackInputs'),
    ],
    'val_dataloader.dataset.pipeline': [
        dict(type='Resize', scale=16, interpolation='area'),
        dict(type='PackInputs'),
    ],
    'train_dataloader.num_workers': 0,
    'val_dataloader.num_workers': 0,
    'train_cfg.max_epochs': 5,
    # Warm-up for one epoch, then the cosine.
    'param_scheduler': [
        dict(type='LinearLR', start_factor=0.01, by_epoch=True, end=1,
             convert_to_iter_based=True),
        dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=5,
             T_max=4, convert_to_iter_based=True),
    ],
    'val_evaluator': [
        dict(type='Accuracy', topk=(1, )),
        dict(type='TNSMetric', by_block=True),
    ],
    'default_hooks.logger': dict(type='LoggerHook', interval=100,
                                 ignore_last=False),
    'log_processor': dict(custom_cfg=[
        dict(data_src='loss', log_name='loss_epoch', method_name='mean',
             window_size='epoch')
    ]),
}
seeds = [0, 1, 2]
measure = dict(num_samples=2000, definitions=['residual', 'output', 'update'],
               ablate_steps=True)
