"""Efficient channel attention."""
from typing import Any

from mmengine.registry import MODELS
from torch import Tensor

from .base import StepSize
from .excitation import ChannelConv, Gate, adaptive_kernel_size
from .pooling import global_mean


@MODELS.register_module()
class ECAAttention(StepSize):
    r"""Efficient channel attention (Wang et al., CVPR 2020, Eq. 9).

    .. math:: \Delta t = \sigma(Conv1D_k(GAP(f)))

    k parameters.

    Args:
        in_channels (int): C.
        kernel_size (int, optional): k, odd. None gives the paper's adaptive
            one (its Eq. 12, γ = 2, b = 1). The published ImageNet networks
            have by stage 3-5-7-7 (ResNet-18), 3-3-5-7 (34, 101) and 3-5-5-7
            (50), the published Faster R-CNN 5 in all stages (50) and 3-3-5-7
            (101): ``step=[dict(type='ECAAttention', kernel_size=k) for k in
            (3, 5, 5, 7)]``. Defaults to 3.
        init_gate (float, optional): Δt where the logits are 0, in (0, 1), by a
            constant that is added to them and that checkpoints do not hold.
            Defaults to 1/2, as published.

    Raises:
        ValueError: if k is not odd and positive, or ``init_gate`` not in
            (0, 1).
    """
    pools_only = True

    def __init__(self,
                 in_channels: int,
                 kernel_size: int | None = 3,
                 init_gate: float | None = None):
        super().__init__()
        if kernel_size is None:
            kernel_size = adaptive_kernel_size(in_channels)
        self.conv = ChannelConv(kernel_size)
        self.gate = Gate(init_gate)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        return self.gate(self.conv(global_mean(residual)))

    def arguments_of(self, weights: dict) -> dict:
        """k, if the weights are of such a module."""
        weight: Any = weights.get('conv.weight')
        alone = len(weights) == 1 and getattr(weight, 'ndim', 0) == 3
        return dict(kernel_size=weight.shape[2]) if alone else {}
