"""ResNet-164 + StepNet, adaptor a (max pooling) on CIFAR-100 (Table 4).

Paper: top-1 76.19 ± 0.14 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_stepnet_adaptor_a_cifar100.py
Result here: not yet run.

The paper shows its adaptors a to d in Fig. 5 alone; this one is our reading
(docs/deviations.md). The accuracy above is that of the paper's adaptor.
"""
_base_ = '../_base_/resnet164_cifar100.py'

model = dict(backbone=dict(step=dict(type='MaxPoolStepAdaptor')))
