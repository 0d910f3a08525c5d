# DeVries and Taylor 2017: 16 px on CIFAR-10, 8 px on CIFAR-100, always; the
# mean of cifar10.py is 0 once an image is normalized. RGB, as it is read.
cutout = dict(type='Cutout', shape=16, pad_val=(125, 123, 114), prob=1.)
cutout_8 = dict(type='Cutout', shape=8, pad_val=(125, 123, 114), prob=1.)
