"""Whether a compiler is at work, on torch 2.1 too, which has no public word.

Dynamo knows these very functions and takes the first for True.
"""
import torch

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
