# Loshchilov and Hutter, ICLR 2017, without restarts: to 0, a value for each
# iteration. T_max is the training's length, which the config gives.
cosine = dict(
    type='CosineAnnealingLR', by_epoch=True, convert_to_iter_based=True)
