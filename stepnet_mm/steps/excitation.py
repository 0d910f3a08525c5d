"""Layers shared by step-size modules: pooled values -> logits."""
import math

import torch
from torch import Tensor, nn

from .norms import in_dtype_of


class Excitation(nn.Sequential):
    """SE's two layers, W₂ ReLU(W₁ z): (N, C, 1, 1) -> (N, C, 1, 1).

    2C²/r parameters, with biases C/r + C more.

    Args:
        channels (int): C.
        reduction (int): r; the hidden width is C/r exactly.
        bias (bool): whether both layers have biases.

    Raises:
        ValueError: if r is not a positive divisor of C.
    """

    def __init__(self, channels: int, reduction: int, bias: bool):
        hidden = divide(channels, reduction, 'reduction')
        super().__init__(
            nn.Linear(channels, hidden, bias), nn.ReLU(),
            nn.Linear(hidden, channels, bias))

    def forward(self, z: Tensor) -> Tensor:
        """Logits, in the dtype of the layers."""
        z = in_dtype_of(self[0], z.flatten(1))
        return super().forward(z)[:, :, None, None]


class ChannelConv(nn.Conv1d):
    """ECA's convolution along channels: (N, C, 1, 1) -> (N, C, 1, 1).

    k parameters, no bias.

    Args:
        kernel_size (int): k.

    Raises:
        ValueError: if k is not odd and positive.
    """

    def __init__(self, kernel_size: int):
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(
                'kernel_size: expected an odd positive number, or None for '
                f'the one that grows with the channels, got {kernel_size!r}; '
                'change it in backbone.step or the cfg of backbone.plugins')
        super().__init__(
            1, 1, kernel_size, padding=kernel_size // 2, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        """Logits, in the dtype of the layer."""
        row = in_dtype_of(self, z.flatten(1)[:, None])
        return super().forward(row).squeeze(1)[:, :, None, None]


class InstanceEnhancement(nn.Module):
    """IE, w ⊗ z + b per channel: (N, C, 1, 1) -> (N, C, 1, 1).

    2C parameters, w = 0 and b = -1 at the start (Appendix F).

    Args:
        channels (int): C.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """w = 0 and b = -1."""
        nn.init.zeros_(self.weight)
        nn.init.constant_(self.bias, -1)

    def forward(self, z: Tensor) -> Tensor:
        """w ⊗ z + b."""
        return torch.addcmul(
            self.bias.view(-1, 1, 1), self.weight.view(-1, 1, 1), z)


class Gate(nn.Module):
    """σ(logits + c), of any shape, where c moves the gates at the start.

    c is a constant, not a parameter: checkpoints do not hold it.

    Args:
        init_gate (float, optional): σ(c), the gate where the logits are 0.
            None leaves c = 0.

    Raises:
        ValueError: if ``init_gate`` is not between 0 and 1.
    """

    def __init__(self, init_gate: float | None):
        super().__init__()
        if init_gate is not None and not 0 < init_gate < 1:
            raise ValueError(
                'init_gate: expected a number between 0 and 1, got '
                f'{init_gate!r}; change it in backbone.step or the cfg of '
                'backbone.plugins, or leave it out for the published start')
        self.shift = 0. if init_gate is None else math.log(
            init_gate / (1 - init_gate))

    def forward(self, logits: Tensor) -> Tensor:
        """The gates, in (0, 1)."""
        return torch.sigmoid(logits + self.shift if self.shift else logits)


def adaptive_kernel_size(channels: int) -> int:
    """ECA's k for C channels: (log₂C + 1) / 2, the next odd number."""
    k = int((math.log2(channels) + 1) / 2)
    return k if k % 2 else k + 1


def divide(channels: int, divisor: int, key: str) -> int:
    """C / ``divisor``.

    Raises:
        ValueError: if that is not a positive whole number; names ``key``.
    """
    if divisor < 1 or channels % divisor:
        raise ValueError(
            f'{key}: expected a positive divisor of the {channels} channels '
            f'that the module is given, got {divisor!r}; change it in '
            'backbone.step or the cfg of backbone.plugins')
    return channels // divisor
