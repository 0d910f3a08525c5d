# The official binary files; 5,000 labelled images to train, 8,000 to test.
data_preprocessor = dict(
    num_classes=10,
    mean=[0.4467 * 255, 0.4398 * 255, 0.4066 * 255],
    std=[0.2603 * 255, 0.2566 * 255, 0.2713 * 255],
    to_rgb=False)  # the images are RGB as they are read
train_dataloader = dict(
    batch_size=128,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='STL10',
        data_root='data/stl10',
        split='train',
        pipeline=[
            dict(type='RandomCrop', crop_size=96, padding=12),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            dict(type='PackInputs'),
        ]))
val_dataloader = dict(
    batch_size=128,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='STL10',
        data_root='data/stl10',
        split='test',
        pipeline=[dict(type='PackInputs')]))
val_evaluator = dict(type='Accuracy', topk=(1, ))
test_dataloader = val_dataloader
test_evaluator = val_evaluator
