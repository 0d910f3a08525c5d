"""The steps of the package, at a size that all of them can take."""
import torch

from stepnet_mm.steps import build_step
from stepnet_mm.steps.base import step_types

CHANNELS = 16
ARGUMENTS = dict(
    SEAttention=dict(reduction=8), CBAMAttention=dict(reduction=8),
    FCAAttention=dict(reduction=8), SEMAttention=dict(reduction=8),
    SGEAttention=dict(groups=4), ConstantStep=dict(learned=True),
    TimmAttention=dict(name='ese'))
ALL = [name for name in step_types() if name != 'ToyStep']
VARIANTS = [name for name in ALL if name.endswith('StepAdaptor')
            and name != 'StepAdaptor']


def cfg_of(name, **kwargs):
    return {'type': name, **ARGUMENTS.get(name, {}), **kwargs}


def randomised(name, **kwargs):
    """A module whose parameters are all away from their starts."""
    step = build_step(cfg_of(name, **kwargs), CHANNELS)
    for parameter in step.parameters():
        torch.nn.init.normal_(parameter)
    return step


def states(n=3, h=5, w=4, dtype=torch.float32):
    return torch.randn(2, n, CHANNELS, h, w, dtype=dtype)


def call(step, x, f):
    """As a plain module where the step sees f alone."""
    return step(x, f) if step.needs_identity else step(f)
