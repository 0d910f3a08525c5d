"""Gates per pixel: CBAM, and SGE per group of channels."""
import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .layers import Excitation, apply_norm, divide
from .pooling import global_max, global_mean, global_std


@MODELS.register_module()
class CBAMAttention(StepSize):
    r"""Channel, then spatial attention (Woo et al., ECCV 2018, Eq. 1 to 3).

    .. math::
        M_c = \sigma(MLP(GAP(f)) + MLP(GMP(f))), \quad
        M_s = \sigma(BN(Conv_{7\times7}([\max_c f'; mean_c f']))), \quad
        f' = f \otimes M_c, \quad \Delta t = M_c \otimes M_s

    Paper: <https://arxiv.org/abs/1807.06521>.
    As its authors publish it: one MLP for both poolings, summed before the
    sigmoid. At the start the MLP's biases are 0, the convolution's weights
    N(0, 2/7²) (Kaiming over fan-out), and the γ of the BatchNorm behind it
    0, so M_s = 1/2. 2C²/r + C/r + C + 2·7² + 2 parameters.

    Args:
        in_channels (int): C.
        reduction (int): r. Defaults to 16.

    Raises:
        ValueError: if r is not a positive divisor of C.

    Examples:
        >>> step = build_step(dict(type='CBAMAttention'), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    needs_space = True

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
        mean, largest = global_mean(residual), global_max(residual)
        channel = (self.excitation(mean) + self.excitation(largest)).sigmoid()
        refined = residual * channel.to(residual.dtype)
        pooled = torch.cat(
            [refined.max(1, keepdim=True).values,
             refined.mean(1, keepdim=True)], 1)
        return channel * apply_norm(self.norm, self.conv(pooled)).sigmoid()


@MODELS.register_module()
class SGEAttention(StepSize):
    r"""Spatial group-wise enhancement (Li et al., 2019, Eq. 1 to 6).

    .. math::
        c = GAP(f_g) \cdot f_g, \quad \hat c = (c - \mu(c)) / (\sigma(c) +
        \epsilon), \quad \Delta t = \sigma(w_g \hat c + b_g)

    For each of G groups of channels; the dot product runs over a group's
    channels, μ and the unbiased σ over space. w = 0 and b = 1 at the start.
    2G parameters. Paper: <https://arxiv.org/abs/1905.09646>.

    Args:
        in_channels (int): C.
        groups (int): G. Defaults to 64.
        eps (float): ε. Defaults to 1e-5.

    Raises:
        ValueError: if G is not a positive divisor of C.

    Examples:
        >>> step = build_step(dict(type='SGEAttention', groups=8), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    needs_space = True

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
        n, channels, height, width = residual.shape
        weighted = residual * global_mean(residual)
        # unflatten would fix the size of the map in an ONNX file.
        score = weighted.reshape(n, self.groups, -1, height, width).sum(2)
        score = (score - global_mean(score)) / (global_std(score) + self.eps)
        w, b = self.weight[:, None, None], self.bias[:, None, None]
        gate = (w * score + b).sigmoid()
        return gate.repeat_interleave(channels // self.groups, 1)
