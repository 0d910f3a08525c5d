"""Adaptors a to d of Table 4: StepAdaptor with one part changed.

The paper defines its four alternatives only in a figure (Fig. 5), which was
not available. These are ours: each replaces one part that the text names
(pooling, group convolution, IEBN, sigmoid; docs/deviations.md).
"""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .adaptor import StepAdaptor
from .pooling import global_max


@MODELS.register_module()
class MaxPoolStepAdaptor(StepAdaptor):
    """Adaptor a: global max pooling instead of average pooling; 6C.

    Max pooling is not linear, so the coarse x_{t+1} is built. Arguments as in
    :class:`StepAdaptor`.
    """

    def _pool(self, identity: Tensor, residual: Tensor) -> list[Tensor]:
        if self.inputs == 'difference':
            return [global_max(residual)]
        if self.inputs == 'current':
            return [global_max(identity)]
        following = global_max(identity + residual)
        if self.inputs == 'next':
            return [following]
        return [global_max(identity), following]


@MODELS.register_module()
class SumStepAdaptor(StepAdaptor):
    """Adaptor b: the pooled states are added, without a convolution; 4C.

    Arguments as in :class:`StepAdaptor`.
    """
    pools_only = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        ones = torch.ones_like(self.conv_weight.data)
        del self.conv_weight
        self.register_buffer('conv_weight', ones, persistent=False)

    def init_weights(self) -> None:
        """As StepAdaptor's, with weights of 1 in the sum."""
        super().init_weights()
        nn.init.ones_(self.conv_weight)


@MODELS.register_module()
class UnnormalizedStepAdaptor(StepAdaptor):
    """Adaptor c: IE without the BatchNorm before it; 4C.

    Arguments as in :class:`StepAdaptor`, without ``norm_cfg``.
    """
    pools_only = True

    def __init__(self,
                 channels: int | None = None,
                 inputs: str = 'both',
                 init_step: float | None = None,
                 in_channels: int | None = None):
        super().__init__(
            channels, inputs, init_step, in_channels=in_channels)
        self.norm = nn.Identity()


@MODELS.register_module()
class SoftmaxStepAdaptor(StepAdaptor):
    """Adaptor d: a softmax over the channels instead of the sigmoid; 6C.

    Δt = C · ``init_step`` · softmax(IE): the channels share a fixed sum, so
    their mean stays at ``init_step``. That of one channel is bounded by
    C · ``init_step``, from scratch C · 0.27, not by 1. Arguments as in
    :class:`StepAdaptor`.
    """
    pools_only = True

    def _max_step_size(self) -> float:
        return self.channels * self.init_step

    def _gate(self, logits: Tensor) -> Tensor:
        return self.max_step * logits.softmax(1)
