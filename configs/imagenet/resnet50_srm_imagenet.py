"""ResNet-50 + SRM on ImageNet-1k (Table 2).

Paper: top-1 76.49 ± 0.03 %, 5 runs.
Command: torchrun --nproc_per_node 8 tools/train.py configs/imagenet/resnet50_srm_imagenet.py --launcher pytorch
Result here: not yet run.
"""
_base_ = '../_base_/resnet50_imagenet.py'

model = dict(backbone=dict(step=dict(type='SRMAttention')))
