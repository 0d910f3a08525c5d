"""Faster R-CNN R-18 FPN + StepNet (from plain weights) on COCO (no row of the paper).

Paper: no figure.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r18_stepnet.py --launcher pytorch
Result here: not yet run.

The weights are a plain ResNet's: a step of 1 keeps its features. Only the
stem is frozen, so that the new steps of stage 1 learn too. norm_eval=True
comes with the base config and covers the adaptors' BatchNorm: its statistics
stay at mean 0 and variance 1, its γ and β learn. With two images a GPU a
training BatchNorm over pooled values would be nearly a sign.

So this detector is not on equal terms with the baselines: such a BatchNorm
is an affine map, which makes the adaptor this package's adaptor c (no
BatchNorm) with a gate in (0, 2), and stage 1 trains. For R-50 and R-101,
faster_rcnn_*_from_stepnet.py is on equal terms.

mmdet's plugins refuse the BasicBlocks of this depth; steps do not. Not a row
of the paper.
"""
_base_ = './_base_/faster_rcnn_r18_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='StepAdaptor', init_step=1), frozen_stages=0))
