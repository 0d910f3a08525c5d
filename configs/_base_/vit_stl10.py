_base_ = [
    './vit.py', './stl10.py', './vit_schedule.py',
    './classification_runtime.py', './tns.py'
]

model = dict(backbone=dict(img_size=96, patch_size=12))
