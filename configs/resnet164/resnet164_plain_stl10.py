"""ResNet-164 on STL-10 (Table 1).

Paper: top-1 82.66 ± 1.05 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_plain_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=None))
