"""ResNet-34 + ECA on ImageNet-1k (Table 2).

Paper: top-1 74.56 ± 0.08 %, 5 runs.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet34_eca_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = '../_base_/resnet34_imagenet.py'

model = dict(
    backbone=dict(
        step=[dict(type='ECAAttention', kernel_size=k) for k in (3, 3, 5, 7)]))
