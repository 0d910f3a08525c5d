"""The fused tail of a step block: last BatchNorm, step size, sum and ReLU.

Where it does not fit, the block runs the plain modules one by one; the
results are the same up to rounding.
"""
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from ..ops import ResidualTail, can_finish
from ..steps.pooled import AffineMap, PooledMap


def can_fuse(block) -> bool:
    """Whether the fused tail computes what the block's modules would.

    It stands for a BatchNorm, a step that pools only and a ReLU, with nothing
    between them, and without hooks on them but those that read an
    :class:`AffineMap` (attribute ``reads_pooled``).
    """
    # An exported graph shows the modules; engines fold BatchNorms themselves.
    if not block.fused or _is_exporting():
        return False
    norm, step = block.last_norm, block.step
    drop_path = getattr(block, 'drop_path', None)
    replaced = [module for module in (norm, step, block.relu, drop_path)
                if module is not None]
    return (getattr(step, 'pools_only', False) and type(norm) is nn.BatchNorm2d
            and type(block.relu) is nn.ReLU
            and isinstance(drop_path, (nn.Identity, type(None)))
            and not block.plugins_at_end and not _has_global_hooks()
            and not any(map(_is_hooked, replaced)))


def fits(block, z: Tensor, identity: Tensor) -> bool:
    """Whether the fused tail can take these maps, and has a variance."""
    alone = z.numel() == z.size(1)
    return can_finish(z, identity) and not (
        alone and _uses_batch(block.last_norm))


def finish(block, z: Tensor, identity: Tensor) -> Tensor:
    """relu(x_t + BN(z) ⊗ Δt), (N, C, H, W)."""
    norm, step = block.last_norm, block.step
    tail = ResidualTail(
        z,
        identity,
        variance=_uses_batch(norm),
        pool_identity=step.needs_identity,
        owned=not _is_hooked(block.last_conv))
    residual = step(
        PooledMap(identity, tail.identity_mean), _normalize(norm, tail))
    return tail.finish(residual.scale, residual.shift)


def _is_exporting() -> bool:
    # Dynamo takes torch.compiler.is_exporting() for True (torch 2.11).
    return torch.compiler.is_compiling() and (
        not torch.compiler.is_dynamo_compiling())


def _has_global_hooks() -> bool:
    return bool(torch_module._global_forward_hooks
                or torch_module._global_forward_pre_hooks
                or torch_module._global_backward_hooks
                or torch_module._global_backward_pre_hooks)


def _is_hooked(module: nn.Module) -> bool:
    hooks = [*module._forward_pre_hooks.values(),
             *module._forward_hooks.values()]
    return bool(module._backward_hooks or module._backward_pre_hooks
                or 'forward' in module.__dict__) or any(
        not getattr(hook, 'reads_pooled', False) for hook in hooks)


def _uses_batch(norm: nn.BatchNorm2d) -> bool:
    return norm.training or norm.running_mean is None


def _normalize(norm: nn.BatchNorm2d, tail: ResidualTail) -> AffineMap:
    """BN(z) from the moments of each sample."""
    if _uses_batch(norm):
        mean = tail.mean.mean(0, keepdim=True)
        var = (tail.variance + (tail.mean - mean).square()).mean(
            0, keepdim=True)
        _track(norm, mean, var, len(tail.mean) * tail.map[0, 0].numel())
    else:
        mean, var = [_table(v, tail)
                     for v in (norm.running_mean, norm.running_var)]
    scale = 1 / (var + norm.eps).sqrt()
    if norm.weight is not None:
        scale = scale * _table(norm.weight, tail)
    shift = -mean * scale
    if norm.bias is not None:
        shift = _table(norm.bias, tail) + shift
    return AffineMap(tail, scale, shift)


def _table(values: Tensor, tail: ResidualTail) -> Tensor:
    return values.to(tail.mean.dtype)[:, None, None]


@torch.no_grad()
def _track(norm: nn.BatchNorm2d, mean: Tensor, var: Tensor, count: int):
    """What nn.BatchNorm2d does to its running statistics."""
    if not norm.training or not norm.track_running_stats or (
            norm.running_mean is None):
        return
    momentum = norm.momentum or 0.
    if norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
        if norm.momentum is None:
            momentum = 1 / float(norm.num_batches_tracked)
    for running, new in ((norm.running_mean, mean),
                         (norm.running_var, var * (count / (count - 1)))):
        # In the wider dtype: a variance may be more than a half can hold.
        new = new.flatten() * momentum
        running.copy_(new.add_(running, alpha=1 - momentum))
