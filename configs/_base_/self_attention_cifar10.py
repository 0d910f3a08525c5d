_base_ = [
    './self_attention.py', './cifar10.py', './self_attention_schedule.py',
    './classification_runtime.py'
]
train_dataloader = dict(batch_size=100)
custom_hooks = [
    dict(type='TNSHook', interval=100),
    dict(type='AttentionMapHook', interval=10),
]
