"""Tests for a compiler at work, and a way out of its reach.

On torch 2.1 too, which has no public name for the first. Dynamo knows these
very functions and takes ``is_compiling`` for True.
"""
import sys
from collections.abc import Callable

import torch
from torch import nn
from torch.autograd import forward_ad

is_compiling = getattr(torch.compiler, 'is_compiling', None) or (
    torch._utils.is_compiling)
#: An older torch exports through Dynamo alone.
is_dynamo_compiling = getattr(torch.compiler, 'is_dynamo_compiling',
                              is_compiling)


def is_exporting() -> bool:
    """Whether torch.export traces without Dynamo.

    Dynamo takes torch.compiler.is_exporting() for True (torch 2.11).
    """
    return is_compiling() and not is_dynamo_compiling()


def is_transforming() -> bool:
    """Whether torch.jit traces, or torch.func or forward-mode AD works."""
    return (torch.jit.is_tracing() or forward_ad._current_level >= 0
            or torch._C._are_functorch_transforms_active())


def in_backward() -> bool:
    """Whether autograd's backward pass runs, as in what it recomputes."""
    return not is_compiling() and torch._C._current_graph_task_id() != -1


def uncompiled(function: Callable) -> Callable:
    """The function, out of the reach of a compiler at work.

    Where a graph breaks, as on torch 2.1, Dynamo runs the rest of the code,
    and compiles each function that is called there.
    """
    if 'torch._dynamo' not in sys.modules:  # whose import takes seconds
        return function
    return torch.compiler.disable(function)


def refuse_compiled(
        model: nn.Module, remedy: str = 'enter the recorder before '
        'torch.compile, or measure without it') -> None:
    """Raise a ValueError if a part of a model is compiled.

    It may ignore hooks and steps that come later.
    """
    for name, module in model.named_modules():
        own = vars(module).get('forward')
        if (module._modules and hasattr(module, '_orig_mod')
                or getattr(module, '_compiled_call_impl', None)
                or own and hasattr(own, '_torchdynamo_orig_callable')):
            raise ValueError(
                f'{name or type(module).__name__}: expected a module that is '
                'not compiled, got a compiled one, which does not see what '
                f'comes later; {remedy}')
