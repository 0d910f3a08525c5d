_base_ = 'mmpretrain::_base_/default_runtime.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)

# The authors' other repositories report the best epoch: it is kept beside the
# last two. With one, mmengine would delete it before the next is written.
default_hooks = dict(
    checkpoint=dict(max_keep_ckpts=2, save_best='accuracy/top1'))
vis_backends = [
    dict(type='LocalVisBackend'),
    dict(type='TensorboardVisBackend'),
]
visualizer = dict(type='UniversalVisualizer', vis_backends=vis_backends)
