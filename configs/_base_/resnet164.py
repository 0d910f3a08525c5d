model = dict(
    type='ImageClassifier',
    backbone=dict(type='StepResNetCIFAR', depth=164),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=256,
        init_cfg=None,  # torch's own, as in the authors' other repositories
        loss=dict(type='CrossEntropyLoss')))
