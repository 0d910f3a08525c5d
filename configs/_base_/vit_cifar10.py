_base_ = [
    './vit.py', './cifar10.py', './vit_schedule.py',
    './classification_runtime.py', './tns.py'
]
