"""Norm layers of step-size modules: building, dtype, a single value."""
import functools
import warnings

import torch
import torch.distributed as dist
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def build_norm(key: str, cfg: dict, channels: int) -> nn.Module:
    """A norm layer of mmcv's registry.

    Raises:
        ValueError: if there is no such layer, or not for that many channels;
            names the config ``key``.
    """
    from mmcv.cnn import build_norm_layer  # takes seconds to import
    try:
        return build_norm_layer(cfg, channels)[1]
    except (AssertionError, KeyError, RuntimeError, TypeError,
            ValueError) as error:
        reason = f'{type(error).__name__}: {error}'
        if isinstance(error, KeyError) and 'type' in cfg:  # mmcv says "None"
            reason = f'no {cfg["type"]!r} is registered'
        raise ValueError(
            f'{key}: expected a norm layer of mmcv for {channels} channels, '
            f'got {cfg} ({reason}); take one such as '
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
    if not alone or not isinstance(norm, _BatchNorm) or _is_synchronised(norm):
        return norm(x)
    _warn_alone()
    return F.batch_norm(x, norm.running_mean, norm.running_var,
                        norm.weight, norm.bias, False, 0., norm.eps)


def in_dtype_of(layer: nn.Module, x: Tensor) -> Tensor:
    """x in the dtype of a layer's parameters.

    As it is where there are none: an nn.Identity, a quantised layer.
    """
    for parameter in layer.parameters():
        return x.to(parameter.dtype)
    return x


def _is_synchronised(norm: nn.Module) -> bool:
    return (isinstance(norm, nn.SyncBatchNorm) and dist.is_available()
            and dist.is_initialized() and dist.get_world_size() > 1)


@functools.lru_cache(None)
def _warn_alone() -> None:
    warnings.warn(
        'train_dataloader.batch_size: expected at least 2 images for the '
        'BatchNorm of a step-size module in training, got one image, so it '
        'uses its running statistics; raise the batch size, set '
        'backbone.norm_eval=True, or use sync_bn over several GPUs',
        stacklevel=2)
