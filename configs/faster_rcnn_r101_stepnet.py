"""Faster R-CNN R-101 FPN + StepNet (from plain weights) on COCO (Table 3).

Paper: AP 41.9, AP50 62.6, AP75 44.4, APS 25.4, APM 46.8, APL 53.2.
Command: torchrun --nproc_per_node 8 tools/train.py configs/faster_rcnn_r101_stepnet.py --launcher pytorch
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
"""
_base_ = './_base_/faster_rcnn_r101_coco.py'

model = dict(
    backbone=dict(
        step=dict(type='StepAdaptor', init_step=1), frozen_stages=0))
