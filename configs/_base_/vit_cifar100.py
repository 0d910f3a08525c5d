_base_ = [
    './vit.py', './cifar100.py', './vit_schedule.py',
    './classification_runtime.py', './tns.py'
]

model = dict(head=dict(num_classes=100))
