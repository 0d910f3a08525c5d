"""ResNet-164 + StepNet, adaptor b (sum, no convolution) on STL-10 (Table 4).

Paper: top-1 84.10 ± 0.24 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_adaptor_b_stl10.py
Result here: not yet run.

The paper shows its adaptors a to d in Fig. 5 alone; this one is our reading
(docs/deviations.md). The accuracy above is that of the paper's adaptor.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(backbone=dict(step=dict(type='SumStepAdaptor')))
