# Zhang et al., ICLR 2018: Beta(1, 1) on CIFAR.
mixup = dict(augments=[dict(type='Mixup', alpha=1.)])
