"""Style-based recalibration module."""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .norms import apply_norm
from .pooling import global_mean, global_std


@MODELS.register_module()
class SRMAttention(StepSize):
    r"""Style-based recalibration (Lee et al., ICCV 2019, Eq. 1 to 6).

    .. math:: \Delta t = \sigma(BN(a \otimes \mu(f) + b \otimes \sigma(f)))

    μ and σ are mean and unbiased standard deviation over space; σ is 0 where
    H·W = 1. a = b = 0 at the start. 4C parameters.

    Args:
        in_channels (int): C.
        eps (float): added to the variance. Defaults to 1e-5.
    """
    pools_only = True

    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.mean_weight = nn.Parameter(torch.empty(in_channels))
        self.std_weight = nn.Parameter(torch.empty(in_channels))
        self.norm = nn.BatchNorm2d(in_channels)
        self.init_weights()

    def init_weights(self) -> None:
        """a = b = 0; the BatchNorm's own start."""
        super().init_weights()
        nn.init.zeros_(self.mean_weight)
        nn.init.zeros_(self.std_weight)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        a, b = self.mean_weight, self.std_weight
        style = (
            a[:, None, None] * global_mean(residual) +
            b[:, None, None] * global_std(residual, self.eps))
        return apply_norm(self.norm, style).sigmoid()
