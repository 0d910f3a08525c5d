# 6 layers of 9 heads by learned relative position, width 400.
model = dict(
    type='ImageClassifier',
    backbone=dict(type='SelfAttentionNet'),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=400,
        loss=dict(type='CrossEntropyLoss')))
