"""The fused tail of a step block: last BatchNorm, step size, sum and ReLU.

A step is called as in the plain block, with a :class:`PooledMap` in the place
of each map. The results equal the modules' up to rounding.
"""
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..ops import Norm, ResidualTail, is_compiling, is_exporting
from ..ops.residual_tail import is_large
from ..steps.base import StepSize
from ..steps.pooling import AffineMap, BuiltMap
from ..utils.direct_calls import GLOBAL_HOOKS, normalize

if TYPE_CHECKING:
    from .blocks import StepBlock


def can_fuse(block: 'StepBlock', x: Tensor) -> bool:
    """Whether the fused tail can stand for the block's modules.

    These are a BatchNorm, a step that pools only and a ReLU, with nothing
    between them and no hook on them but such as read a :class:`PooledMap`
    (attribute ``reads_pooled``), under a compiler none at all. True too where
    there is no step; never in pre-activation, where no norm is last, and
    not with a small x, where the modules are as fast.
    """
    # A graph shows the modules; engines fold BatchNorms themselves.
    if not block.fused or torch.jit.is_tracing() or (
            is_exporting() if is_compiling() else not is_large(x)):
        return False
    norm, step = block.last_norm, block.step
    drop_path = block._modules.get('drop_path')
    replaced = [module for module in (norm, step, block.relu, drop_path)
                if module is not None]
    return (getattr(step, 'pools_only', step is None)
            and type(norm) is nn.BatchNorm2d and norm.track_running_stats
            and norm.running_mean is not None and norm.momentum is not None
            and type(block.relu) is nn.ReLU
            and isinstance(drop_path, (nn.Identity, type(None)))
            and not block.plugins_at_end and not any(GLOBAL_HOOKS)
            and not any(map(_is_hooked, replaced)))


def run_tail(block: 'StepBlock', z: Tensor, identity: Tensor) -> Tensor:
    """relu(x_t + BN(z) ⊗ Δt) of a block that can be fused, (N, C, H, W)."""
    step = block.step
    if step is None or not ResidualTail.supports(z, identity):
        return block.end(identity, block.complete(z))
    if _writes_in_place(z):
        return _run_in_place(block, step, z, identity)
    return _run_by_moments(block.last_norm, step, z, identity)


def _run_in_place(block: 'StepBlock', step: StepSize, z: Tensor,
                  identity: Tensor) -> Tensor:
    z = normalize_in_place(block.last_norm, block.last_conv, z)
    _, step_size = step(BuiltMap(identity), BuiltMap(z))
    return torch.addcmul(identity, z, step_size.to(z.dtype), out=z).relu_()


def _writes_in_place(z: Tensor) -> bool:
    """Whether large maps are written over: in inference on a CPU.

    There they are expensive to allocate.
    """
    return z.device.type == 'cpu' and not (
        torch.is_grad_enabled() or is_compiling())


def normalize_in_place(norm: Any, conv: Any, z: Tensor) -> Tensor:
    """norm(z) of z = conv(x), over z where nobody holds it."""
    if (type(norm) is not nn.BatchNorm2d or norm.training
            or norm.running_mean is None or type(conv) is not nn.Conv2d
            or not _writes_in_place(z) or _is_hooked(conv) or _is_hooked(norm)
            or not ResidualTail.supports(z, z)):
        return normalize(norm, z)
    mean, var = norm.running_mean, norm.running_var
    unused = mean.new_empty(0)
    return torch.ops.aten.native_batch_norm.out(
        z, norm.weight, norm.bias, mean, var, False, 0., norm.eps,
        out=z, save_mean=unused, save_invstd=unused)[0]


def _run_by_moments(norm: Any, step: StepSize, z: Tensor,
                    identity: Tensor) -> Tensor:
    running = None if norm.training else (norm.running_mean, norm.running_var)
    tail = ResidualTail(
        Norm(norm.weight, norm.bias, norm.eps, running), z, identity,
        pool_identity=step.needs_identity)
    if norm.training:
        _track(norm, tail)
    _, step_size = step(
        BuiltMap(identity, tail.moments.identity_mean), AffineMap(tail))
    return tail.output(step_size)


def _is_hooked(module: nn.Module) -> bool:
    if module._backward_hooks or module._backward_pre_hooks or (
            'forward' in module.__dict__):
        return True
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for hook in hooks.values():
            # A graph breaks at a pooled map, and what was read is lost.
            if is_compiling() or not getattr(hook, 'reads_pooled', False):
                return True
    return False


@torch.no_grad()
def _track(norm: Any, tail: ResidualTail) -> None:
    """Update the running statistics as nn.BatchNorm2d does."""
    norm.num_batches_tracked.add_(1)
    centre, square = tail.moments.centre, tail.moments.square
    count = tail.map.numel() // centre.numel()
    for running, new in (
            (norm.running_mean, centre),
            (norm.running_var, square * (count / (count - 1)))):
        wide = running.to(new.dtype)  # half precision may not hold the new
        running.copy_(wide.lerp(new.view(-1), norm.momentum))
