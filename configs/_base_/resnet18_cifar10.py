_base_ = [
    './resnet18.py', './cifar10.py', './self_attention_schedule.py',
    './classification_runtime.py'
]
train_dataloader = dict(batch_size=100)
