# 7 layers of width 256 on 8 x 8 patches (docs/deviations.md).
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='StepVisionTransformer',
        arch=dict(
            embed_dims=256,
            num_layers=7,
            num_heads=4,
            feedforward_channels=512),
        img_size=32,
        patch_size=4,
        with_cls_token=False,
        final_norm=False,  # the mean over the tokens is normalised
        out_type='avg_featmap'),
    head=dict(
        type='LinearClsHead',
        num_classes=10,
        in_channels=256,
        loss=dict(type='CrossEntropyLoss')))
