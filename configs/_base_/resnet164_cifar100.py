_base_ = [
    './resnet164.py', './cifar100.py', './cifar_schedule.py',
    './classification_runtime.py', './tns.py'
]

model = dict(head=dict(num_classes=100))
