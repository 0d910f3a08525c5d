# Zhong et al., AAAI 2020: RE-R, random values.
random_erasing = dict(
    type='RandomErasing',
    erase_prob=0.5,
    min_area_ratio=0.02,
    max_area_ratio=0.4,
    aspect_range=(0.3, 1 / 0.3),
    mode='rand')
