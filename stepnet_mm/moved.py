"""Import paths of earlier versions: aliases with a deprecation warning."""
import functools
import importlib.abc
import importlib.util
import sys
import warnings

from .after_import import after_import
from .lazy_exports import lazy_exports

#: Path under the package in version 0.1 -> today's.
MOVED = {
    'attention.positions': 'attention.encodings',
    'datasets.deaf_workers': 'utils.worker_signals',
    'datasets.random_state': 'utils.random_state',
    'datasets.resumable_loader': 'resume.resumable_loader',
    'engine.atomic_backend': 'resume.atomic_backend',
    'engine.atomic_checkpoint_hook': 'resume.atomic_checkpoint_hook',
    'engine.attention_map_hook': 'hooks.attention_map_hook',
    'engine.broken_image_hook': 'hooks.broken_image_hook',
    'engine.config': 'config',
    'engine.config_text': 'safe_loading.config_text',
    'engine.conversion': 'config.conversion',
    'engine.entry': 'launch.entry',
    'engine.inheriting_config': 'config.inheriting_config',
    'engine.launch': 'launch.distributed',
    'engine.load_report_hook': 'hooks.load_report_hook',
    'engine.loops': 'resume.loops',
    'engine.measuring_hook': 'hooks.measuring_hook',
    'engine.non_finite_loss_hook': 'resume.non_finite_loss_hook',
    'engine.preemption_hook': 'resume.preemption_hook',
    'engine.probe': 'recording.probe',
    'engine.safe_loading': 'safe_loading.loaders',
    'engine.safe_pickle': 'safe_loading.unpickler',
    'engine.slurm': 'utils.slurm',
    'engine.tns_hook': 'hooks.tns_hook',
    'engine.training_state': 'resume.training_state',
    'engine.trial': 'doctor.trainings',
    'evaluation.tns_metric': 'hooks.tns_metric',
    'models.mmdet_resnet': 'models.mmdet_binding',
    'models.mmpretrain_resnet': 'models.mmpretrain_binding',
}
#: Old path -> its names that are others today, or elsewhere.
RENAMED = {
    'datasets.deaf_workers': {
        'DeafWorker': 'utils.worker_signals.IgnoreSignals',
        'deafen': 'utils.worker_signals.ignore_in_workers'},
    'engine.atomic_backend': {'damage': 'resume.latest_checkpoint.damage'},
}
#: A folder that is gone -> what it gave, by today's folders.
GONE = {
    'engine': dict(
        hooks=['AttentionMapHook', 'BrokenImageHook', 'LoadReportHook',
               'TNSHook'],
        resume=['AtomicCheckpointHook', 'AtomicLocalBackend',
                'NonFiniteLossHook', 'PreemptionHook',
                'ResumableEpochBasedTrainLoop',
                'ResumableIterBasedTrainLoop'],
        safe_loading=['register_safe_loaders']),
    'evaluation': dict(hooks=['TNSMetric', 'TNSMetricHook']),
}
#: Folder or module -> names that it gave and what they are now.
OLD_NAMES = {
    'attention': {
        'read_attention': 'attention.read_attention_record',
        'read_attention_runs': 'attention.read_attention_histories'},
    'stiffness.record': {
        'append_rows': 'stiffness.append_rows',
        'begin_record': 'stiffness.begin_record',
        'read_record': 'stiffness.read_stiffness_record'},
}


def keep_old_paths(package: str) -> None:
    """Have the old paths and names under a package give today's."""
    sys.meta_path.append(_Finder(package))
    for folder, names in OLD_NAMES.items():
        after_import(f'{package}.{folder}', functools.partial(
            _add_old_names, {name: f'{package}.{new}'
                             for name, new in names.items()}))


def _add_old_names(names: dict[str, str], module) -> None:
    """Have a module give names that it no longer has (PEP 562)."""
    others = vars(module).get('__getattr__')

    def __getattr__(name: str):
        if name in names:
            _warn(f'{module.__name__}.{name}', names[name], stacklevel=3)
            return _find(names[name])
        if others:
            return others(name)
        raise AttributeError(
            f'module {module.__name__!r} has no attribute {name!r}')

    module.__getattr__ = __getattr__


def _warn(old: str, new: str, stacklevel: int) -> None:
    warnings.warn(f'{old} has moved to {new}; the old path will go with '
                  'version 2.0', DeprecationWarning, stacklevel=stacklevel)


class _Finder(importlib.abc.MetaPathFinder):
    """Asked last, so only for what is not there."""

    def __init__(self, package: str):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        package, _, rest = name.partition('.')
        if package != self.package or rest not in MOVED.keys() | GONE:
            return None
        return importlib.util.spec_from_loader(
            name, _Alias(package, rest), is_package=rest in GONE)


class _Alias(importlib.abc.Loader):

    def __init__(self, package: str, old: str):
        self.package, self.old = package, old

    def create_module(self, spec):
        return None  # the usual empty one

    def exec_module(self, module) -> None:
        places = [f'{self.package}.{new}'
                  for new in GONE.get(self.old) or [MOVED[self.old]]]
        _warn(module.__name__, ', '.join(places), stacklevel=3)
        if self.old in GONE:
            module.__getattr__, module.__all__ = lazy_exports(
                self.package, GONE[self.old])
        else:
            today = importlib.import_module(*places)
            for name, place in RENAMED.get(self.old, {}).items():
                setattr(today, name, _find(f'{self.package}.{place}'))
            # What stands here when this returns is what the import gives.
            sys.modules[module.__name__] = today


def _find(place: str):
    """'package.module.name' -> the object."""
    module, _, name = place.rpartition('.')
    return getattr(importlib.import_module(module), name)
