"""Faster R-CNN R-18 FPN + StepNet on COCO (no row of the paper).

Paper: no figure.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r18_stepnet.py --launcher pytorch
Result here: not yet run.

The weights are a plain ResNet's: a step of 1 keeps its features. Only the
stem is frozen, so that the new steps of stage 1 learn too. norm_eval=True
comes with the base config and covers the adaptors' BatchNorm: its statistics
stay at mean 0 and variance 1, its γ and β learn. With two images a GPU a
training BatchNorm over pooled values would be nearly a sign.

mmdet's plugins refuse the BasicBlocks of this depth; steps do not. Not a row
of the paper.
"""
_base_ = './_base_/faster_rcnn_r18_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='StepAdaptor', init_step=1), frozen_stages=0))
