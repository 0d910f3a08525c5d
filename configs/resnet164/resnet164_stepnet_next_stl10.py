"""ResNet-164 + StepNet, F(x_{t+1}) on STL-10 (Table 4).

Paper: top-1 85.12 ± 0.54 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_next_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor', inputs='next')))
