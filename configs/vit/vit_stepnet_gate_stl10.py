"""ViT + StepNet behind the attention on STL-10 (no row of the paper).

Paper: no figure.
Command: python tools/train.py configs/vit/vit_stepnet_gate_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/vit_stl10.py'

model = dict(backbone=dict(step=dict(type='StepAdaptor'), step_mode='gate'))
