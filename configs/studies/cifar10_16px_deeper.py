"""Deeper networks: CIFAR-10 at 16 px, ResNet-83, 5 epochs.

Do the differences of cifar10_16px_modules.py grow with depth? Eight measured
blocks a stage instead of five.
"""
_base_ = './_base_/cifar10_16px_four.py'

options = {'model.backbone.depth': 83}
