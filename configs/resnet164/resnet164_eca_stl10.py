"""ResNet-164 + ECA on STL-10 (Table 1).

Paper: top-1 83.89 ± 1.21 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_eca_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='ECAAttention')))
