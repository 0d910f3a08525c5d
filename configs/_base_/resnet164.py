model = dict(
    type='ImageClassifier',
    backbone=dict(type='StepResNetCIFAR', depth=164),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=256,
        init_cfg=None,  # torch's own start of a Linear, as published
        loss=dict(type='CrossEntropyLoss')))
