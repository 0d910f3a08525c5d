"""Faster R-CNN R-34 at half width on blood cells: an example of own data.

Data: docs/backbones.md#your-own-data.
Command: python tools/train.py configs/blood_cells/faster_rcnn_r34_plain_blood_cells.py
Result here: AP 55.6 ± 0.5 on test, 3 runs (docs/results/blood_cells.md).
"""
_base_ = '../_base_/faster_rcnn_r34_blood_cells.py'

model = dict(backbone=dict(step=None))
