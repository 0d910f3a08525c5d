"""Layers without nn.Module's call, for networks that wait for the host.

Only where nobody looks into the call. With small maps two thirds of a layer's
time go into ``nn.Module.__call__``, the layer's own Python and the lookup of
its parameters. The operators are the same, and so are the results.
"""
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from .compilation import is_compiling

#: Those who look into the calls of all modules.
GLOBAL_HOOKS = (
    torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks,
    torch_module._global_backward_hooks,
    torch_module._global_backward_pre_hooks)


def convolve(conv: Any, x: Tensor) -> Tensor:
    """conv(x), of an nn.Conv2d directly."""
    if _is_plain(conv, nn.Conv2d, x) and conv.padding_mode == 'zeros':
        weight = conv._parameters.get('weight')  # FSDP takes it away
        if weight is not None:
            return torch.conv2d(
                x, weight, conv._parameters['bias'], conv.stride,
                conv.padding, conv.dilation, conv.groups)
    return conv(x)


def normalize(norm: Any, x: Tensor) -> Tensor:
    """norm(x), of an nn.BatchNorm2d directly."""
    training = norm.training
    if _is_plain(norm, nn.BatchNorm2d, x) and not (
            training and x.numel() == x.size(1)):
        rows, running = norm._parameters.get, norm._buffers.get
        weight, mean = rows('weight'), running('running_mean')
        if not (weight is None or mean is None or norm.momentum is None or
                training and not norm.track_running_stats):
            if training:
                norm._buffers['num_batches_tracked'].add_(1)
            return torch.batch_norm(
                x, weight, rows('bias'), mean, running('running_var'),
                training, norm.momentum, norm.eps,
                torch.backends.cudnn.enabled)
    return norm(x)


def rectify(relu: Any, x: Tensor) -> Tensor:
    """relu(x), of an nn.ReLU directly."""
    if _is_plain(relu, nn.ReLU, x):
        return torch.relu_(x) if relu.inplace else torch.relu(x)
    return relu(x)


def _is_plain(module: nn.Module, kind: type, x: Tensor) -> bool:
    return type(module) is kind and type(x) is Tensor and not (
        module._forward_hooks or module._forward_pre_hooks
        or module._backward_hooks or module._backward_pre_hooks
        or 'forward' in module.__dict__ or any(GLOBAL_HOOKS)
        or is_compiling())
