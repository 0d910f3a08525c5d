"""StepNet and neural stiffness for MMDetection and MMPretrain.

Importing the package makes known to mmengine, mmdet and mmpretrain what it
registers, so ``custom_imports = dict(imports='stepnet_mm')`` is enough in a
config. Nothing is imported before it is asked for: ``import
stepnet_mm.stiffness`` needs torch and no mm library.
"""
from .config_path import config_path
from .lazy_exports import lazy_exports
from .registration import register
from .version import __version__

__all__ = ['__version__', 'add_steps', 'config_path']
__getattr__, _ = lazy_exports(__name__, dict(dict.fromkeys(
    ('attention', 'config', 'datasets', 'hooks', 'launch', 'ops', 'recording',
     'residual', 'resume', 'safe_loading', 'steps', 'stiffness', 'utils',
     'visualization'), ()), models=('add_steps', )))

register()
