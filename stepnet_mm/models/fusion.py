"""The fused tail of a step block: last BatchNorm, step size, sum and ReLU.

Where it does not fit, the block runs the plain modules one by one; the
results are the same up to rounding.
"""
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from ..ops import (
    ResidualTail,
    can_finish,
    is_compiling,
    is_exporting,
    kept_mean,
)
from ..steps.pooled import AffineMap, BuiltMap


def can_fuse(block) -> bool:
    """Whether the fused tail computes what the block's modules would.

    It stands for a BatchNorm, a step that pools only and a ReLU, with nothing
    between them, and without hooks on them but those that read an
    :class:`PooledMap` (attribute ``reads_pooled``). True too where there is
    no step.
    """
    # An exported graph shows the modules; engines fold BatchNorms themselves.
    if not block.fused or is_exporting():
        return False
    norm, step = block.last_norm, block.step
    drop_path = getattr(block, 'drop_path', None)
    replaced = [module for module in (norm, step, block.relu, drop_path)
                if module is not None]
    return (getattr(step, 'pools_only', step is None)
            and type(norm) is nn.BatchNorm2d
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
    # Without a gradient torch's own operators are as fast on a CPU, and fewer
    # small ones are left around them.
    built = z.device.type == 'cpu' and not (
        torch.is_grad_enabled() or is_compiling())
    return (_finish_built if built else _finish_affine)(block, z, identity)


def _finish_built(block, z: Tensor, identity: Tensor) -> Tensor:
    norm, conv = block.last_norm, block.last_conv
    owned = type(conv) is nn.Conv2d and not _is_hooked(conv)
    over = owned and not _uses_batch(norm)
    f = _normalize_over(norm, z) if over else norm(z)
    f, step = block.step(
        BuiltMap(identity, kept_mean(identity)), BuiltMap(f))
    return torch.addcmul(identity, f, step.to(f.dtype), out=f).relu_()


def _normalize_over(norm: nn.BatchNorm2d, z: Tensor) -> Tensor:
    """norm(z), written over z: large maps are dear to allocate."""
    unused = norm.running_mean.new_empty(0)
    return torch.ops.aten.native_batch_norm.out(
        z, norm.weight, norm.bias, norm.running_mean, norm.running_var, False,
        0., norm.eps, out=z, save_mean=unused, save_invstd=unused)[0]


def _finish_affine(block, z: Tensor, identity: Tensor) -> Tensor:
    norm, step = block.last_norm, block.step
    tail = ResidualTail(z, identity, variance=_uses_batch(norm),
                        pool_identity=step.needs_identity)
    residual = step(
        BuiltMap(identity, tail.identity_mean), _normalize(norm, tail))
    return tail.finish(residual.scale, residual.shift)


def _has_global_hooks() -> bool:
    return bool(torch_module._global_forward_hooks
                or torch_module._global_forward_pre_hooks
                or torch_module._global_backward_hooks
                or torch_module._global_backward_pre_hooks)


def _is_hooked(module: nn.Module) -> bool:
    if module._backward_hooks or module._backward_pre_hooks or (
            'forward' in module.__dict__):
        return True
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for hook in hooks.values():
            if not getattr(hook, 'reads_pooled', False):
                return True
    return False


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
    scale = (var + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * _table(norm.weight, tail)
    if norm.bias is None:
        return AffineMap(tail, scale, -mean * scale)
    shift = torch.addcmul(_table(norm.bias, tail), mean, scale, value=-1)
    return AffineMap(tail, scale, shift)


def _table(values: Tensor, tail: ResidualTail) -> Tensor:
    return values.to(tail.mean.dtype).view(-1, 1, 1)


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
