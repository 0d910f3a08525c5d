"""Convolutional block attention module."""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .excitation import Excitation
from .norms import apply_norm
from .pooling import global_max, global_mean


@MODELS.register_module()
class CBAMAttention(StepSize):
    r"""Channel, then spatial attention (Woo et al., ECCV 2018, Eq. 1 to 3).

    .. math::
        M_c = \sigma(MLP(GAP(f)) + MLP(GMP(f))), \quad
        M_s = \sigma(BN(Conv_{7\times7}([\max_c f'; mean_c f']))), \quad
        f' = f \otimes M_c, \quad \Delta t = M_c \otimes M_s

    As its authors publish it: one MLP for both poolings, summed before the
    sigmoid. At the start the MLP's biases are 0, the convolution's weights
    N(0, 2/7²) (Kaiming over fan-out), and the γ of the BatchNorm behind it
    0, so M_s = 1/2. 2C²/r + C/r + C + 2·7² + 2 parameters.

    Args:
        in_channels (int): C.
        reduction (int): r. Defaults to 16.

    Raises:
        ValueError: if r is not a positive divisor of C.
    """

    def __init__(self, in_channels: int, reduction: int = 16):
        super().__init__()
        self.excitation = Excitation(in_channels, reduction, bias=True)
        self.conv = nn.Conv2d(2, 1, 7, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(1, momentum=.01)
        self.init_weights()

    def init_weights(self) -> None:
        """The MLP's weights as its layers draw them, the rest as above."""
        super().init_weights()
        for name, parameter in self.named_parameters():
            if name.endswith('bias'):
                nn.init.zeros_(parameter)
        nn.init.kaiming_normal_(self.conv.weight, mode='fan_out')
        nn.init.zeros_(self.norm.weight)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, H, W), in (0, 1)."""
        channel = self._channel(residual)
        refined = residual * channel.to(residual.dtype)
        return channel * self._spatial(refined)

    def _channel(self, f: Tensor) -> Tensor:
        """M_c: (N, C, H, W) -> (N, C, 1, 1)."""
        mean, largest = global_mean(f), global_max(f)
        return (self.excitation(mean) + self.excitation(largest)).sigmoid()

    def _spatial(self, f: Tensor) -> Tensor:
        """M_s: (N, C, H, W) -> (N, 1, H, W)."""
        pooled = torch.cat(
            [f.max(1, keepdim=True).values,
             f.mean(1, keepdim=True)], 1)
        return apply_norm(self.norm, self.conv(pooled)).sigmoid()
