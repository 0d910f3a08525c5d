"""Gates per channel from pooled values: SE, ECA, SRM and SEM."""
import math

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .layers import Excitation, InstanceEnhancement, apply_norm, in_dtype_of
from .pooling import global_mean, global_std


@MODELS.register_module()
class SEAttention(StepSize):
    r"""Squeeze-and-excitation (Hu et al., CVPR 2018, Eq. 2 and 3).

    .. math:: \Delta t = \sigma(W_2 ReLU(W_1 GAP(f) + b_1) + b_2)

    Paper: <https://arxiv.org/abs/1709.01507>.
    2C²/r + C/r + C parameters. The hidden width is C/r exactly, where
    mmpretrain's SELayer rounds it to a multiple of 8.

    Args:
        in_channels (int): C.
        reduction (int): r. Defaults to 16.
        bias (bool): whether the layers have biases. Defaults to True.
        init_gate (float, optional): Δt where the logits are 0, in (0, 1), by a
            constant that is added to them and that checkpoints do not hold.
            Defaults to 1/2, as published.

    Raises:
        ValueError: if r is not a positive divisor of C.

    Examples:
        >>> step = build_step(dict(type='SEAttention', reduction=8), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    pools_only = True

    def __init__(self, in_channels: int, reduction: int = 16,
                 bias: bool = True, init_gate: float | None = None):
        super().__init__()
        self.excitation = Excitation(in_channels, reduction, bias)
        self.gate = Gate(init_gate)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        return self.gate(self.excitation(global_mean(residual)))


@MODELS.register_module()
class ECAAttention(StepSize):
    r"""Efficient channel attention (Wang et al., CVPR 2020, Eq. 9).

    .. math:: \Delta t = \sigma(Conv1D_k(GAP(f)))

    Paper: <https://arxiv.org/abs/1910.03151>.
    k parameters.

    Args:
        in_channels (int): C.
        kernel_size (int, optional): k, odd. None gives the paper's adaptive
            one (its Eq. 12, γ = 2, b = 1). Defaults to 3; the published
            networks have others by stage (docs/deviations.md).
        init_gate (float, optional): as of :class:`SEAttention`.

    Raises:
        ValueError: if k is not odd and positive.

    Examples:
        >>> step = build_step(dict(type='ECAAttention', kernel_size=5), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    pools_only = True

    def __init__(self, in_channels: int, kernel_size: int | None = 3,
                 init_gate: float | None = None):
        super().__init__()
        if kernel_size is None:
            kernel_size = adaptive_kernel_size(in_channels)
        self.conv = ChannelConv(kernel_size)
        self.gate = Gate(init_gate)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        return self.gate(self.conv(global_mean(residual)))


@MODELS.register_module()
class SRMAttention(StepSize):
    r"""Style-based recalibration (Lee et al., ICCV 2019, Eq. 1 to 6).

    .. math:: \Delta t = \sigma(BN(a \otimes \mu(f) + b \otimes \sigma(f)))

    Paper: <https://arxiv.org/abs/1903.10829>.
    μ and σ are mean and unbiased standard deviation over space; σ is 0 where
    H·W = 1. a = b = 0 at the start. 4C parameters.

    Args:
        in_channels (int): C.
        eps (float): added to the variance. Defaults to 1e-5.

    Examples:
        >>> step = build_step(dict(type='SRMAttention'), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
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
        style = (a[:, None, None] * global_mean(residual) +
                 b[:, None, None] * global_std(residual, self.eps))
        return apply_norm(self.norm, style).sigmoid()


@MODELS.register_module()
class SEMAttention(StepSize):
    r"""Switchable excitation (Zhong et al., 2022).

    .. math::
        z = GAP(f), \quad (\alpha_1, \alpha_2, \alpha_3) = \sigma(W z + v),
        \quad \Delta t = \sigma(\alpha_1 SE(z)) \otimes
        \sigma(\alpha_2 ECA(z)) \otimes \sigma(\alpha_3 IE(z))

    Paper: <https://arxiv.org/abs/2209.05680>.
    SE, ECA and IE are the logits of their modules: α weights them before the
    sigmoid. ECA has the kernel that grows with C, IE starts at w = 0, b = -1.
    2C²/r + C/r + C (SE), k (ECA), 2C (IE) and 3C + 3 (W, v) parameters.

    Args:
        in_channels (int): C.
        reduction (int): r of SE. Defaults to 16.

    Raises:
        ValueError: if r is not a positive divisor of C.

    Examples:
        >>> step = build_step(dict(type='SEMAttention'), 64)
        >>> step(torch.rand(2, 64, 7, 7)).shape
        torch.Size([2, 64, 7, 7])
    """
    pools_only = True

    def __init__(self, in_channels: int, reduction: int = 16):
        super().__init__()
        self.switch = nn.Linear(in_channels, 3)
        self.excitation = Excitation(in_channels, reduction, bias=True)
        self.conv = ChannelConv(adaptive_kernel_size(in_channels))
        self.ie = InstanceEnhancement(in_channels)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        z = global_mean(residual)
        share = self.switch(in_dtype_of(self.switch, z.flatten(1)))
        alpha = share.sigmoid()[..., None, None, None].unbind(1)
        logits = self.excitation(z), self.conv(z), self.ie(z)
        gates = [(alpha[i] * u).sigmoid() for i, u in enumerate(logits)]
        return gates[0] * gates[1] * gates[2]


class ChannelConv(nn.Conv1d):
    """ECA's convolution along channels: (N, C, 1, 1) -> (N, C, 1, 1).

    k parameters, no bias. ValueError if k is not odd and positive.
    """

    def __init__(self, kernel_size: int):
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(
                'kernel_size: expected an odd positive number, or None for '
                f'the one that grows with the channels, got {kernel_size!r}; '
                'change it in backbone.step or backbone.plugins')
        super().__init__(
            1, 1, kernel_size, padding=kernel_size // 2, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        """Logits, in the dtype of the layer."""
        row = in_dtype_of(self, z.flatten(1)[:, None])
        return super().forward(row).squeeze(1)[:, :, None, None]


class Gate(nn.Module):
    """σ(logits + c) with the constant c for which σ(c) = ``init_gate``.

    c = 0 for None.
    """

    def __init__(self, init_gate: float | None):
        super().__init__()
        self.shift = 0. if init_gate is None else math.log(
            init_gate / (1 - init_gate))

    def forward(self, logits: Tensor) -> Tensor:
        """The gates, in (0, 1)."""
        return torch.sigmoid(logits + self.shift if self.shift else logits)


def adaptive_kernel_size(channels: int) -> int:
    """ECA's k for C channels: (log₂C + 1) / 2, the next odd number."""
    k = int((math.log2(channels) + 1) / 2)
    return k if k % 2 else k + 1
