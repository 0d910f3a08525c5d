"""Changes of a config by tools' options: data root, AMP, TTA, resume."""
import os.path as osp
import re

from mmengine.config import Config, ConfigDict, DictAction
from mmengine.registry import DATASETS

from ..utils.files import LAST_CHECKPOINT
from .lookup import (
    EVALUATORS,
    accepted_arguments,
    all_dicts,
    class_of,
    each_loader,
    has_hook,
    library_of,
    loaders_of,
    type_name,
)

#: Spaces within a text, not those beside a comma or inside of a bracket.
_SPACES = re.compile(r'(?<=[^,(\[\s]) +(?=[^,)\]\s])')


class OptionsAction(DictAction):
    """mmengine's ``key=value``, whose texts keep their spaces."""

    @staticmethod
    def _parse_iterable(val: str):
        # mmengine drops all spaces. Those of a text are NUL meanwhile, which
        # no command line can hold.
        parsed = DictAction._parse_iterable(
            _SPACES.sub(lambda spaces: '\0' * len(spaces[0]), val))
        if isinstance(parsed, str):
            return val.strip('\'"')
        return _with_spaces(parsed)

    def __call__(self, parser, namespace, values, option_string=None):
        """Add options, or exit with an error of the command line."""
        for text in values:
            try:
                if text.startswith('='):
                    raise ValueError('no key')
                super().__call__(parser, namespace, [text], option_string)
            # No key; mmengine's: no =, brackets that do not match, f(a,b)
            except (ValueError, AssertionError, RecursionError):
                parser.error(
                    f'{option_string}: expected key=value with a number, a '
                    'text or a list of these in whole brackets, got '
                    f'{text!r}; set what is in a dict by KEY.NAME=VALUE, in a '
                    'list of dicts by KEY.0.NAME=VALUE')


def _with_spaces(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(_with_spaces, value))
    return value.replace('\0', ' ') if isinstance(value, str) else value


def set_data_root(cfg: Config, root: str) -> None:
    """Move all datasets of a config, and its evaluators' paths, to ``root``.

    Raises:
        ValueError: if the config names no ``data_root``.
    """
    root = osp.expanduser(root)
    # A retriever's gallery is a data loader of the model.
    parts = loaders_of(cfg), (cfg.get('model') or {}).get('prototype')
    datasets = [node for node in all_dicts(parts) if 'data_root' in node]
    if not datasets:
        raise ValueError('--data-root: expected a dataset with a data_root to '
                         'change, got none in the config; leave it out')
    before = {node['data_root'] or '' for node in datasets}
    for node in datasets:
        node['data_root'] = root
    for node in all_dicts([cfg.get(name) for name in EVALUATORS]):
        # dict's own items: a ConfigDict's build the lazy objects of a config.
        for key, value in list(dict.items(node)):
            node[key] = _moved(value, before, root)


def _moved(value, before: set[str], root: str):
    """A path in a folder of ``before``, or a list of such, in ``root``."""
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(part, before, root) for part in value)
    if not isinstance(value, str):
        return value
    # The innermost folder first, where one lies in another.
    for old in sorted((path.rstrip('/') for path in before), reverse=True):
        if old and f'{value}/'.startswith(f'{old}/'):
            return osp.join(root, value[len(old):].lstrip('/'))
    return value


def use_amp(cfg: Config) -> None:
    """Train with automatic mixed precision and a dynamic loss scale."""
    kind = type_name({'type': 'OptimWrapper', **cfg.optim_wrapper})
    if kind not in ('OptimWrapper', 'AmpOptimWrapper'):
        raise ValueError('--amp: expected optim_wrapper.type OptimWrapper or '
                         f'AmpOptimWrapper, got {kind}; change it, or leave '
                         '--amp out')
    cfg.optim_wrapper.type = 'AmpOptimWrapper'
    cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')


def use_auto_scale_lr(cfg: Config) -> None:
    """Scale the learning rate with the batch size over all ranks."""
    if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
        raise ValueError('--auto-scale-lr: expected '
                         'auto_scale_lr.base_batch_size in the config, got '
                         'none; set it, or leave --auto-scale-lr out')
    cfg.auto_scale_lr.enable = True


def use_no_validation(cfg: Config) -> None:
    """Train without a validation."""
    cfg.update(val_cfg=None, val_dataloader=None, val_evaluator=None)


def set_in_loaders(cfg: Config, **settings) -> None:
    """Set arguments of every data loader that the config has."""
    for loader in each_loader(cfg):
        loader.update(settings)


def use_tta(cfg: Config) -> None:
    """Test with augmentation, as the libraries' own tools/test.py.

    The default ``tta_model`` and ``tta_pipeline`` are the libraries': an
    image and its mirror image.
    """
    if not library_of(cfg) and not {'tta_model', 'tta_pipeline'} <= {*cfg}:
        raise ValueError(
            '--tta: expected tta_model and tta_pipeline in the config, for '
            'mmdet and mmpretrain alone have defaults, got not both; set them')
    model: dict = dict(type='mmpretrain.AverageClsScoreTTA')
    if library_of(cfg) == 'mmdet':
        # mmdet registers it in mmengine's registry, without its scope.
        model = dict(type='DetTTAModel', tta_cfg=dict(
            nms=dict(type='nms', iou_threshold=.5), max_per_img=100))
    cfg.model = ConfigDict(**cfg.get('tta_model', model), module=cfg.model)
    cfg.test_dataloader.dataset.pipeline = (
        cfg.get('tta_pipeline') or _tta_pipeline(cfg))


def _tta_pipeline(cfg: Config) -> list[dict]:
    data = cfg.test_dataloader.dataset
    while 'dataset' in data:
        data = data.dataset
    *steps, pack = data.pipeline
    if library_of(cfg) == 'mmdet':
        pack = dict(type='mmdet.PackDetInputs', meta_keys=(
            'img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor',
            'flip', 'flip_direction'))
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1., 0.)]
    return [*steps, dict(type='TestTimeAug', transforms=[flips, [pack]])]


def use_resume(cfg: Config, path: str) -> None:
    """Resume from a checkpoint, whatever the config sets.

    ``'auto'`` is the last one of the work dir; where there is none yet,
    training begins with the config's ``load_from``.
    """
    cfg.resume = True
    cfg.pop('auto_resume', None)
    if path != 'auto':
        cfg.load_from = path
    elif has_hook(cfg, 'AtomicCheckpointHook'):
        cfg.auto_resume = True
    elif osp.exists(osp.join(cfg.work_dir, LAST_CHECKPOINT)):
        cfg.load_from = None
    else:  # mmengine would resume from load_from
        cfg.resume = False


def add_custom_import(cfg: Config) -> bool:
    """Add this package to the config's imports; False if it is there."""
    wanted = cfg.get('custom_imports') or dict(
        imports=[], allow_failed_imports=False)
    imports = wanted.get('imports') or []
    imports = [imports] if isinstance(imports, str) else list(imports)
    if 'stepnet_mm' in imports:
        return False
    cfg.custom_imports = dict(wanted, imports=[*imports, 'stepnet_mm'])
    return True


def forbid_downloads(cfg: Config, key: str) -> bool:
    """Whether a loader's datasets would have downloaded what is absent."""
    found = False
    for part in all_dicts(cfg[key].get('dataset')):
        kind = class_of(part.get('type'), DATASETS, cfg.get('default_scope'))
        default = kind and 'download' in accepted_arguments(kind)
        if part.get('download', default):
            part['download'] = False
            found = True
    return found
