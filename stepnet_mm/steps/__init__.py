"""Step-size modules: (identity, residual) -> scaled residual; IEBN, a norm.

May import: utils.
"""
from .adaptor import (
    MaxPoolStepAdaptor,
    SoftmaxStepAdaptor,
    StepAdaptor,
    SumStepAdaptor,
    UnnormalizedStepAdaptor,
)
from .base import StepSize, build_step
from .channel_attention import (
    ECAAttention,
    SEAttention,
    SEMAttention,
    SRMAttention,
)
from .constant import ConstantStep
from .fca import FCAAttention
from .iebn import IEBN
from .spatial_attention import CBAMAttention, SGEAttention
from .timm_attention import TimmAttention

__all__ = [
    'CBAMAttention', 'ConstantStep', 'ECAAttention', 'FCAAttention', 'IEBN',
    'MaxPoolStepAdaptor', 'SEAttention', 'SEMAttention', 'SGEAttention',
    'SRMAttention', 'SoftmaxStepAdaptor', 'StepAdaptor', 'StepSize',
    'SumStepAdaptor', 'TimmAttention', 'UnnormalizedStepAdaptor', 'build_step']
