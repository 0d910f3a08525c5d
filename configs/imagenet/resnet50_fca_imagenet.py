"""ResNet-50 + FCA on ImageNet-1k (Table 2).

Paper: top-1 77.22 ± 0.15 %, 5 runs.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet50_fca_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = '../_base_/resnet50_imagenet.py'

model = dict(
    backbone=dict(
        step=[
            dict(type='FCAAttention', dct_size=size)
            for size in (56, 28, 14, 7)
        ]))
