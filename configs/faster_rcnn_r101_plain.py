"""Faster R-CNN R-101 FPN on COCO (Table 3).

Paper: AP 38.9, AP50 60.3, AP75 41.4, APS 22.1, APM 43.9, APL 50.0.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_plain.py --launcher pytorch
Result here: not yet run.
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(backbone=dict(step=None))
