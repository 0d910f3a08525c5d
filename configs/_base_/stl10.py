# The official binary files; 5,000 labelled images to train, 8,000 to test.
_base_ = './cifar10.py'

data_preprocessor = dict(
    mean=[0.4467 * 255, 0.4398 * 255, 0.4066 * 255],
    std=[0.2603 * 255, 0.2566 * 255, 0.2713 * 255])
train_dataloader = dict(
    dataset=dict(
        type='STL10',
        data_root='data/stl10',
        pipeline=[
            dict(type='RandomCrop', crop_size=96, padding=12),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            dict(type='PackInputs'),
        ]))
val_dataloader = dict(dataset=dict(type='STL10', data_root='data/stl10'))
test_dataloader = val_dataloader
