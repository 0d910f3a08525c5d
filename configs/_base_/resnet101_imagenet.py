# Table 6, as for ResNet50; batch 256 = 8 GPUs x 32.
_base_ = [
    'mmpretrain::_base_/models/resnet101.py',
    'mmpretrain::_base_/datasets/imagenet_bs32.py',
    'mmpretrain::_base_/schedules/imagenet_bs256.py',
    './classification_runtime.py', './tns.py'
]

model = dict(backbone=dict(type='StepResNet', zero_init_residual=False))
train_cfg = dict(max_epochs=120)
