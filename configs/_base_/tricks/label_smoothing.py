# Szegedy et al., CVPR 2016: 0.1. The number of classes is that of the scores.
label_smoothing = dict(
    type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')
