"""ResNet-164 + StepNet on STL-10 (Table 1).

Paper: top-1 86.08 ± 0.11 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor')))
