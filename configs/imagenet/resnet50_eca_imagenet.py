"""ResNet-50 + ECA on ImageNet-1k (Table 2).

Paper: top-1 77.07 ± 0.09 %, 5 runs.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet50_eca_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = '../_base_/resnet50_imagenet.py'

model = dict(
    backbone=dict(
        step=[dict(type='ECAAttention', kernel_size=k) for k in (3, 5, 5, 7)]))
