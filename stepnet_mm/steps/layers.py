"""Layers that step-size modules share: pooled values -> logits, and norms."""
import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.fx
import torch.nn.functional as F
from mmengine.dist import get_world_size
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..utils.direct_calls import normalize
from ..utils.error_origin import functions_in


class Excitation(nn.Sequential):
    """SE's two layers, W₂ ReLU(W₁ z): (N, C, 1, 1) -> (N, C, 1, 1).

    2C²/r parameters, with biases C/r + C more.

    Raises:
        ValueError: if the reduction r is not a positive divisor of C.
    """

    def __init__(self, channels: int, reduction: int, bias: bool):
        hidden = divide(channels, reduction, 'reduction')
        super().__init__(
            nn.Linear(channels, hidden, bias), nn.ReLU(),
            nn.Linear(hidden, channels, bias))

    def forward(self, z: Tensor) -> Tensor:
        """Logits, in the dtype of the layers."""
        down, relu, up = self
        z = in_dtype_of(down, z.flatten(1))
        logits = up(relu(down(z)))
        return logits.view(-1, logits.size(1), 1, 1)


class InstanceEnhancement(nn.Module):
    """IE, w ⊗ z + b per channel: (N, C, 1, 1) -> (N, C, 1, 1).

    2C parameters, w = 0 and b = -1 at the start (Appendix F).
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
        # Not addcmul, whose gradients cost the host more.
        return self.weight.view(-1, 1, 1) * z + self.bias.view(-1, 1, 1)


def divide(channels: int, divisor: int, key: str) -> int:
    """C / ``divisor``; ValueError that names ``key`` if it is not whole."""
    if divisor < 1 or channels % divisor:
        raise ValueError(
            f'{key}: expected a positive divisor of the {channels} channels '
            f'that the module is given, got {divisor!r}; change it in '
            'backbone.step or backbone.plugins')
    return channels // divisor


def build_norm(key: str, cfg: dict, channels: int) -> nn.Module:
    """A norm layer of mmcv's registry.

    Raises:
        ValueError: if there is none for that many channels; names ``key``.
    """
    from mmcv.cnn import build_norm_layer  # takes seconds to import
    with named_norm(key, cfg):
        return build_norm_layer(cfg, channels)[1]


@contextmanager
def named_norm(key: str, cfg: dict | None) -> Iterator[None]:
    """Have an error of a norm layer's constructor name its key.

    Raises:
        ValueError: instead of what mmcv or torch raise.
    """
    try:
        yield
    except (AssertionError, KeyError, RuntimeError, TypeError,
            ValueError) as error:
        if 'build_norm_layer' not in functions_in(error):
            raise
        raise ValueError(
            f'{key}: expected a norm layer of mmcv that takes the channels, '
            f'got {cfg} ({type(error).__name__}: {error}); take one such as '
            "dict(type='BN'), dict(type='SyncBN') or "
            "dict(type='GN', num_groups=32)") from error


def apply_norm(norm: nn.Module, x: Tensor) -> Tensor:
    """Normalise x, (N, C, H, W) -> (N, C, H, W), in the dtype of the norm.

    With one value per channel (one image, pooled) a BatchNorm has no batch to
    normalise over and torch raises. Its running statistics are used then, and
    one warning says so. (A graph that torch.fx traces has no such branch.)
    """
    x = in_dtype_of(norm, x)
    if isinstance(x, torch.fx.Proxy):
        return norm(x)
    alone = norm.training and x.numel() == x.size(1)
    if not alone or not isinstance(norm, _BatchNorm) or (
            isinstance(norm, nn.SyncBatchNorm) and get_world_size() > 1):
        return normalize(norm, x)
    _warn_alone()
    return F.batch_norm(x, norm.running_mean, norm.running_var,
                        norm.weight, norm.bias, False, 0., norm.eps)


def in_dtype_of(layer: nn.Module, x: Tensor) -> Tensor:
    """x in the dtype of a layer's parameters.

    As it is where there are none: an nn.Identity, a quantised layer.
    """
    # Not by its name, which torch.fx would make a node of a graph.
    weight = layer._parameters.get('weight')
    if weight is None or weight.dtype is x.dtype:
        return x
    return x.to(weight.dtype)


@functools.lru_cache(None)
def _warn_alone() -> None:
    warnings.warn(
        'train_dataloader.batch_size: expected at least 2 images for the '
        'BatchNorm of a step-size module in training, got one image, so it '
        'uses its running statistics; raise the batch size, set '
        'backbone.norm_eval=True, or use sync_bn over several GPUs',
        stacklevel=2)
