"""A config before anything is built: read, completed, checked, converted.

May import: steps, utils.
"""
from ..lazy_exports import lazy_exports

__getattr__, __all__ = lazy_exports(
    __name__, dict(
        conversion=['to_stepnet'],
        image_scale=['add_image_scale', 'set_image_scale'],
        lookup=['EVALUATION', 'TRAIN', 'has_hook', 'library_of'],
        options=['OptionsAction', 'add_custom_import',
                 'set_data_root', 'set_in_loaders', 'use_amp',
                 'use_auto_scale_lr', 'use_no_validation', 'use_resume',
                 'use_tta'],
        reading=['read_config'],
        resume_and_hooks=['add_resume_and_hooks', 'use_exact_resume',
                          'use_intact_images', 'use_tns_metric']))
