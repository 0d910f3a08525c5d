"""ResNet-164 + FCA on STL-10 (Table 1).

Paper: top-1 85.34 ± 0.25 %, 5 runs.
Command: python tools/train.py configs/resnet164/resnet164_fca_stl10.py
Result here: not yet run.
"""
_base_ = '../_base_/resnet164_stl10.py'

model = dict(
    backbone=dict(
        step=[
            dict(type='FCAAttention', dct_size=size, bias=True)
            for size in (96, 48, 24)
        ]))
