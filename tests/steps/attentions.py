"""The modules that see f alone, at a size that all of them can take."""
from importlib.util import find_spec

import torch

from stepnet_mm.steps import build_step

CHANNELS = 16
ATTENTIONS = dict(
    SEAttention=dict(reduction=8),
    ECAAttention=dict(),
    CBAMAttention=dict(reduction=8),
    SRMAttention=dict(),
    FCAAttention=dict(reduction=8),
    SGEAttention=dict(groups=4),
    SEMAttention=dict(reduction=8),
    ConstantStep=dict(learned=True))
if find_spec('timm'):
    ATTENTIONS['TimmAttention'] = dict(name='ese')
ALL = {**ATTENTIONS, 'StepAdaptor': dict()}
VARIANTS = ('MaxPoolStepAdaptor', 'SumStepAdaptor', 'UnnormalizedStepAdaptor',
            'SoftmaxStepAdaptor')


def cfg_of(name, **kwargs):
    return {'type': name, **ALL.get(name, {}), **kwargs}


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
