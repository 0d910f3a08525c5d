"""Pooling over space, and BatchNorm over what may be a single value."""
import functools
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mmcv.cnn import build_norm_layer
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .pooled import AffineMap, PooledMap, deviation_norm


def global_mean(x: Tensor) -> Tensor:
    """GAP in float32 or wider: (N, C, H, W) -> (N, C, 1, 1)."""
    if isinstance(x, (PooledMap, AffineMap)):
        return x.mean
    dtype = torch.promote_types(x.dtype, torch.float32)
    return x.mean((2, 3), keepdim=True, dtype=dtype)


def global_std(x: Tensor, eps: float = 0.) -> Tensor:
    """Unbiased standard deviation over space: (N, C, H, W) -> (N, C, 1, 1).

    The root of (variance + ``eps``), in float32 or wider, with a gradient
    everywhere; 0 where H·W = 1, which has no spread.

    Args:
        x (Tensor): (N, C, H, W).
        eps (float): added to the variance. Defaults to 0.
    """
    if isinstance(x, PooledMap):
        x = x.values
    if isinstance(x, AffineMap):
        norm, size = x.deviation_norm, x.size
    else:
        norm, size = deviation_norm(x), x[0, 0].numel()
    if size == 1:
        return norm
    std = norm / (size - 1)**.5
    return (std.square() + eps).sqrt() if eps else std


def build_norm(key: str, cfg: dict, channels: int) -> nn.Module:
    """A norm layer of mmcv's registry.

    Raises:
        ValueError: if there is no such layer; names the config ``key``.
    """
    try:
        return build_norm_layer(cfg, channels)[1]
    except (KeyError, TypeError) as error:
        raise ValueError(f'{key}: got {cfg}, expected a norm layer of mmcv: '
                         f'{error}') from None


def apply_norm(norm: nn.Module, x: Tensor) -> Tensor:
    """Normalise x, (N, C, H, W) -> the same, in the dtype of the norm.

    With one value per channel (one image, pooled) a BatchNorm has no batch to
    normalise over and torch raises. Its running statistics are used then, and
    one warning says so.
    """
    dtypes = [parameter.dtype for parameter in norm.parameters()]
    x = x.to(dtypes[0] if dtypes else x.dtype)
    alone = x.numel() == x.size(1) and not _is_synchronised(norm)
    if not (alone and isinstance(norm, _BatchNorm) and norm.training):
        return norm(x)
    _warn_alone()
    return F.batch_norm(x, norm.running_mean, norm.running_var,
                        norm.weight, norm.bias, False, 0., norm.eps)


def _is_synchronised(norm: nn.Module) -> bool:
    return isinstance(norm,
                      nn.SyncBatchNorm) and dist.is_available() and (
                          dist.is_initialized() and dist.get_world_size() > 1)


@functools.lru_cache(None)
def _warn_alone():
    warnings.warn(
        'A step-size module saw one image in training: its BatchNorm has one '
        'value per channel and uses its running statistics. Raise '
        'train_dataloader.batch_size, set backbone.norm_eval=True, or use '
        'sync_bn over several GPUs.',
        stacklevel=2)
