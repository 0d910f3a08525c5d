_base_ = [
    './self_attention.py', './cifar10.py', './vit_schedule.py',
    './classification_runtime.py'
]
# A centre or a width is no weight: 0 is not where it should go.
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys={
        '.positions.': dict(decay_mult=0),
        '.absolute.': dict(decay_mult=0)}))
custom_hooks = [
    dict(type='TNSHook', interval=100),
    dict(type='AttentionMapHook', interval=10),
]
