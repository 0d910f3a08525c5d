"""ResNet-164 + StepNet, F(x_{t+1} - x_t) on STL-10 (Table 4).

Paper: top-1 85.26 ± 0.72 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_difference_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='difference')))
