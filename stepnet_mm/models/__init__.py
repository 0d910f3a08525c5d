"""Blocks and backbones, one thin binding module per library.

May import: attention, ops, steps, utils.
"""
import importlib

from .backbone import StepBackbone, StepOwner
from .blocks import StepBlock, step_block_class

__all__ = ['StepBackbone', 'StepBlock', 'StepOwner', 'step_block_class']

_BINDINGS = 'mmdet_binding', 'mmpretrain_binding'


def __getattr__(name: str):
    """A backbone, from the library's binding that has it.

    Raises:
        ImportError: if both have one, which differ in their arguments.
    """
    found = {}
    for binding in _BINDINGS if name.startswith('Step') else ():
        try:
            module = importlib.import_module(f'{__name__}.{binding}')
        except ModuleNotFoundError:  # one library alone is enough
            continue
        if hasattr(module, name):
            found[f'{__name__}.{binding}'] = getattr(module, name)
    if len(found) > 1:
        raise ImportError(f'{name}: expected the library that is meant, got '
                          f'{__name__}; import it from {" or ".join(found)}')
    if not found:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return found.popitem()[1]
