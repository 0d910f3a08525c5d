"""StepNet and neural stiffness for MMDetection and MMPretrain.

Importing the package makes known to mmengine, mmdet and mmpretrain what it
registers, so ``custom_imports = dict(imports='stepnet_mm')`` is enough in a
config. Nothing is imported before it is asked for: ``import
stepnet_mm.stiffness`` needs torch and no mm library.
"""
import importlib

from .config_path import config_path
from .registration import register
from .version import __version__

__all__ = ['__version__', 'config_path']
_FOLDERS = ('attention', 'datasets', 'engine', 'evaluation', 'models', 'ops',
            'recording', 'steps', 'stiffness', 'visualization')


def __getattr__(name: str):
    if name not in _FOLDERS:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return importlib.import_module(f'{__name__}.{name}')


register()
