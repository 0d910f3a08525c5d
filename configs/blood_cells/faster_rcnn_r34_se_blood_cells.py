"""Faster R-CNN R-34 at half width + SE on blood cells: an example of own data.

Data: docs/backbones.md#your-own-data.
Command: python tools/train.py configs/blood_cells/faster_rcnn_r34_se_blood_cells.py
Result here: AP 55.8 ± 1.0 on test, 3 runs (docs/results/blood_cells.md).
"""
_base_ = '../_base_/faster_rcnn_r34_blood_cells.py'

model = dict(backbone=dict(step=dict(type='SEAttention')))
