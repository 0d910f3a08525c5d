"""ResNet-34 + SGE on ImageNet-1k (Table 2).

Paper: top-1 74.50 ± 0.03 %, 5 runs.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet34_sge_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = '../_base_/resnet34_imagenet.py'

model = dict(backbone=dict(step=dict(type='SGEAttention')))
