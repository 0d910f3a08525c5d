_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)

model = dict(backbone=dict(type='StepResNet'))
custom_hooks = [
    dict(type='TNSHook', interval=50),
    dict(type='LoadReportHook'),
]
vis_backends = [
    dict(type='LocalVisBackend'),
    dict(type='TensorboardVisBackend'),
]
visualizer = dict(vis_backends=vis_backends)
