# Yun et al., ICCV 2019: Beta(1, 1), every second batch on CIFAR.
cutmix = dict(augments=[dict(type='CutMix', alpha=1.)], probs=0.5)
