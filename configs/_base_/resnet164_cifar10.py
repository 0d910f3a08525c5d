_base_ = [
    './resnet164.py', './cifar10.py', './cifar_schedule.py',
    './classification_runtime.py', './tns.py'
]
