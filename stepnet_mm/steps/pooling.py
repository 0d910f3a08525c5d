"""Global average pooling, and BatchNorm over what it leaves."""
import functools
import warnings

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def global_mean(x: Tensor) -> Tensor:
    """GAP in float32 or wider: (N, C, H, W) -> (N, C, 1, 1)."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    return x.mean((2, 3), keepdim=True, dtype=dtype)


def norm_of_pooled(norm: nn.Module, pooled: Tensor) -> Tensor:
    """Normalise pooled values, (N, C, 1, 1) -> the same.

    With one value per channel (one image) a BatchNorm has no batch to
    normalise over and torch raises. Its running statistics are used then, and
    one warning says so.
    """
    parameter = next(norm.parameters(), pooled)
    pooled = pooled.to(parameter.dtype)
    alone = pooled.numel() == pooled.size(1) and not _is_synchronised(norm)
    if not (alone and isinstance(norm, _BatchNorm) and norm.training):
        return norm(pooled)
    _warn_alone()
    return F.batch_norm(pooled, norm.running_mean, norm.running_var,
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
