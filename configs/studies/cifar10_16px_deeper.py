"""Some of cifar10_16px_modules.py in a ResNet-83: do differences grow with it?

Eight measured blocks a stage instead of five.
"""
_base_ = './_base_/cifar10_16px_four.py'

options = {'model.backbone.depth': 83}
