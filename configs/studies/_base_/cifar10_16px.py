# A ResNet-56 with bottlenecks: five measured blocks a stage.
_base_ = './cifar10_16px_data.py'

options = {'model.backbone.depth': 56}
