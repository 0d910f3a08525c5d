"""ResNet-164 + StepNet, F(x_t) on STL-10 (Table 4).

Paper: top-1 84.74 ± 0.64 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_current_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='current')))
