"""Pre-activation residual blocks (He et al. 2016b), with a step size."""
from typing import Any

from torch import Tensor

from ..steps.layers import build_norm
from .blocks import StepBlock


class PreActBlock(StepBlock):
    """Mixin for BasicBlock and Bottleneck: x_{t+1} = x_t + f(x_t) ⊗ Δt.

    f is norm, ReLU and convolution, two or three times, and nothing follows
    the sum. Where the shortcut is a projection, it takes relu(norm1(x_t)),
    as f's first convolution does.
    """
    norm_cfg: dict  # the library's
    last_norm = None  # f ends in its convolution: there is nothing to fuse

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for i in range(1, self.num_convs + 1):
            self._put_norm_before(i)

    def _put_norm_before(self, i: int) -> None:
        conv: Any = self._modules.pop(f'conv{i}')
        name = getattr(self, f'norm{i}_name')
        del self._modules[name]
        self.add_module(name, build_norm(
            'backbone.norm_cfg', self.norm_cfg, conv.in_channels))
        self.add_module(f'conv{i}', conv)

    def _advance(self, x: Tensor) -> Tensor:
        """x_{t+1} = x_t + f(x_t) ⊗ Δt."""
        z = self._pre_activate(1, x)
        identity = x if self.downsample is None else self.downsample(z)
        conv: Any = self.conv1
        z = conv(z)
        for i in range(2, self.num_convs + 1):
            z = getattr(self, f'conv{i}')(self._pre_activate(i, z))
        return self.end(identity, z)

    def activate(self, x: Tensor) -> Tensor:
        """The sum itself."""
        return x

    def _pre_activate(self, i: int, x: Tensor) -> Tensor:
        return self.relu(getattr(self, f'norm{i}')(x))
