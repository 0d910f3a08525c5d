"""ResNet-164 + StepNet, adaptor a (max pooling) on STL-10 (Table 4).

Paper: top-1 84.21 ± 0.12 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_adaptor_a_stl10.py
Result here: not yet run.

This adaptor is ours: the paper shows its adaptors a to d only in a picture,
Fig. 5, which was not at hand (docs/deviations.md). The accuracy that the
paper gives is that of its own adaptor.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='MaxPoolStepAdaptor')))
