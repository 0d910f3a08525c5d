"""Step-size modules: (identity, residual) -> scaled residual.

May import: utils.
"""
from .adaptor import StepAdaptor
from .adaptor_variants import (
    MaxPoolStepAdaptor,
    SoftmaxStepAdaptor,
    SumStepAdaptor,
    UnnormalizedStepAdaptor,
)
from .base import StepSize, build_step
from .cbam import CBAMAttention
from .constant import ConstantStep
from .eca import ECAAttention
from .fca import FCAAttention
from .iebn import IEBN
from .se import SEAttention
from .sem import SEMAttention
from .sge import SGEAttention
from .srm import SRMAttention
from .timm_attention import TimmAttention

__all__ = [
    'CBAMAttention', 'ConstantStep', 'ECAAttention', 'FCAAttention', 'IEBN',
    'MaxPoolStepAdaptor', 'SEAttention', 'SEMAttention', 'SGEAttention',
    'SRMAttention', 'SoftmaxStepAdaptor', 'StepAdaptor', 'StepSize',
    'SumStepAdaptor', 'TimmAttention', 'UnnormalizedStepAdaptor', 'build_step'
]
