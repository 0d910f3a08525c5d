"""Spatial group-wise enhancement."""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .excitation import divide
from .pooling import global_mean, global_std


@MODELS.register_module()
class SGEAttention(StepSize):
    r"""Spatial group-wise enhancement (Li et al., 2019, Eq. 1 to 6).

    .. math::
        c = GAP(f_g) \cdot f_g, \quad \hat c = (c - \mu(c)) / (\sigma(c) +
        \epsilon), \quad \Delta t = \sigma(w_g \hat c + b_g)

    for each of G groups of channels; the dot product runs over a group's
    channels, μ and the unbiased σ over space. w = 0 and b = 1 at the start.
    2G parameters.

    Args:
        in_channels (int): C.
        groups (int): G. Defaults to 64.
        eps (float): ε. Defaults to 1e-5.

    Raises:
        ValueError: if G is not a positive divisor of C.
    """

    def __init__(self, in_channels: int, groups: int = 64, eps: float = 1e-5):
        super().__init__()
        divide(in_channels, groups, 'groups')
        self.groups = groups
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(groups))
        self.bias = nn.Parameter(torch.empty(groups))
        self.init_weights()

    def init_weights(self) -> None:
        """w = 0 and b = 1."""
        super().init_weights()
        nn.init.zeros_(self.weight)
        nn.init.ones_(self.bias)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, H, W), one map per group, in (0, 1)."""
        weighted = residual * global_mean(residual)
        score = weighted.unflatten(1, (self.groups, -1)).sum(2)
        score = (score - global_mean(score)) / (global_std(score) + self.eps)
        w, b = self.weight[:, None, None], self.bias[:, None, None]
        gate = (w * score + b).sigmoid()
        return gate.repeat_interleave(residual.size(1) // self.groups, 1)
