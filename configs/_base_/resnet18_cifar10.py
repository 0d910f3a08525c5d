_base_ = [
    './resnet18.py', './cifar10.py', './cifar_schedule.py',
    './classification_runtime.py'
]
