"""StepNet and neural stiffness for MMDetection and MMPretrain.

Importing the package registers everything that the installed libraries
allow, so ``custom_imports = dict(imports='stepnet_mm')`` is enough in a
config. ``import stepnet_mm.stiffness`` works with no mm library present.
"""
from .config_path import config_path
from .optional import import_binding
from .version import __version__

if import_binding(f'{__name__}.steps', 'mmcv'):
    from . import (attention, datasets, engine,  # noqa: F401
                   evaluation, models, recording, steps)

__all__ = ['__version__', 'config_path']
