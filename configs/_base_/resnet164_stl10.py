_base_ = [
    './resnet164.py', './stl10.py', './cifar_schedule.py',
    './classification_runtime.py', './tns.py'
]
