"""Faster R-CNN R-50 FPN on COCO (Table 3).

Paper: AP 36.9, AP50 57.5, AP75 39.4, APS 22.1, APM 39.6, APL 46.4.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r50_plain.py --launcher pytorch
Result here: not yet run.
"""
_base_ = './_base_/faster_rcnn_r50_coco.py'

model = dict(backbone=dict(step=None))
