"""A study file, its methods, and the configs of its runs, as begun."""
import ast
import copy
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mmengine.config import Config

from stepnet_mm.config import read_config
from stepnet_mm.safe_loading.config_text import settings_of
from stepnet_mm.stiffness import DEFINITIONS
from stepnet_mm.utils.files import atomic_write

#: Measurements after training, if the study file sets none.
MEASURE: dict[str, Any] = dict(
    num_samples=2000, definitions=['residual'], ablate_steps=False)
#: Names of methods, which name files.
NAME = re.compile(r'(?!.*_seed)\w{1,100}', re.ASCII)


@dataclass
class StudyMethod:
    """One method; config and options are resolved against the study's."""
    name: str
    config: Path
    options: dict[str, Any]
    seeds: Sequence[int]
    pooled: bool
    paper: str = ''
    baseline: str = ''

    def __post_init__(self):
        if not NAME.fullmatch(self.name):
            raise ValueError(
                'methods: expected names of at most 100 letters (a to z), '
                f"digits and _, without '_seed', got {self.name!r}")
        self.seeds = list(self.seeds)

    @cached_property
    def resolved(self) -> Config:
        """The config with its options, not to be changed."""
        try:
            cfg = read_config(str(self.config), 'work_dir', self.options)
        except Exception as error:  # a config is code, and may raise anything
            raise ValueError(
                f'methods.{self.name}: expected a config and options that '
                f'fit it, got {type(error).__name__}: {error}, of '
                f'{self.config}; correct config or options') from None
        if (cfg.get('train_cfg') or {}).get('max_iters'):
            # mmengine would log each evaluation as one of epoch 0.
            logger = (cfg.get('default_hooks') or {}).get('logger') or {}
            cfg.merge_from_dict({'default_hooks.logger': {
                'type': 'LoggerHook', **logger, 'log_metric_by_epoch': False}})
        return cfg


class Study:
    """A study file; its keys are the arguments, as in docs/studies.md.

    Attributes:
        settings (str): digest of the settings that all methods share;
            records of different settings do not compare.
    """

    def __init__(self, path: Path, methods: dict[str, dict],
                 seeds: Sequence[int] = (0, ), options: dict | None = None,
                 metric: str = 'accuracy/top1', measure: dict | None = None,
                 baselines: Sequence[str] = (), pooled: bool = True):
        self.name, self.path = path.stem, path
        self.metric, self.baselines = metric, baselines
        self.measure = {**MEASURE, **(measure or {})}
        check_names('measure', self.measure, MEASURE)
        check_names('measure.definitions', self.measure['definitions'],
                    DEFINITIONS)
        if self.measure['num_samples'] < 1:  # or the training is in vain
            raise ValueError('measure.num_samples: expected 1 or more, got '
                             f'{self.measure["num_samples"]}; set it')
        self.settings = digest(dict(
            options=options or {}, metric=metric,
            measure={key: self.measure[key]
                     for key in ('num_samples', 'definitions')}))
        self.methods = [StudyMethod(name, **{
            'seeds': seeds, 'pooled': pooled, **fields,
            'config': Path(os.path.normpath(path.parent / fields['config'])),
            'options': {**(options or {}), **(fields.get('options') or {})}
        }) for name, fields in methods.items()]

    @property
    def about(self) -> str:
        """The docstring of the file."""
        return ast.get_docstring(ast.parse(self.path.read_text())) or ''


def read_study(path) -> Study:
    """Read a study file; ValueError if it cannot be read."""
    path = Path(path)
    try:
        return Study(path, **Config.fromfile(str(path)).to_dict())
    except Exception as error:  # it is code, and may raise anything
        raise ValueError(f'{path}: expected a study file, got '
                         f'{type(error).__name__}: {error}; correct it, or '
                         'its base') from None


def check_names(key: str, names: Iterable, known: Iterable) -> None:
    """Raise ValueError if a name is not known."""
    known = list(known)
    if unknown := sorted({*names} - {*known}):
        raise ValueError(f'{key}: expected some of {known}, got {unknown}; '
                         'correct the names')


class StudyRun:
    """A method with a seed, in a folder of a study's work dir.

    Attributes:
        name (str): METHOD_seedN, as the other tools read it.
        folder (Path): its work dir.
        config_file (Path): the resolved config that it is trained from.
    """

    def __init__(self, study: Study, method: StudyMethod, seed: int,
                 work_dir: Path):
        self.study, self.method, self.seed = study, method, seed
        self.name = f'{method.name}_seed{seed}'
        self.folder = work_dir / self.name
        self.config_file = work_dir / 'configs' / f'{self.name}.py'
        self.log = self.folder / 'output.log'
        self.ablation_file = self.folder / 'ablation' / 'steps.json'
        self.times_file = self.folder / 'times.json'

    def stiffness_file(self, definition: str) -> Path:
        """The record of its NSI by a definition."""
        return self.folder / f'stiffness_{definition}.jsonl'

    def config(self) -> Config:
        """The resolved config."""
        cfg = copy.deepcopy(self.method.resolved)
        cfg.work_dir = str(self.folder)
        cfg.merge_from_dict({'randomness.seed': self.seed})
        return cfg

    def check_config(self) -> None:
        """Raise ValueError if the run was begun with another config.

        The config in the work dir is read as data: nothing of it is executed.
        """
        if not self.config_file.is_file():
            return
        try:
            begun = Config(settings_of(self.config_file.read_bytes()))
        except (ValueError, KeyError) as error:  # it may come from elsewhere
            raise ValueError(
                f'{self.config_file}: expected settings as a study writes '
                f'them, got {error}; delete the file') from None
        old, new = (comparable(cfg) for cfg in (begun, self.config()))
        if digest(old) != digest(new):
            raise ValueError(
                f'{self.name}: expected the config that it was begun with, '
                f'{self.config_file}, got another one from {self.study.path}; '
                f'take back the change, or delete {self.folder} and that file '
                f'to begin anew:\n{Config.diff(Config(old), Config(new))}')

    def write_config(self) -> None:
        """Write :attr:`config_file`: the tools execute no other text."""
        self.check_config()
        with atomic_write(self.config_file) as file:
            file.write(self.config().pretty_text.encode())


def runs_of(study: Study, work_dir: Path) -> list[StudyRun]:
    """All runs of a study: every method's first seed, then the second, ..."""
    rounds = zip_longest(*(
        [StudyRun(study, method, seed, work_dir) for seed in method.seeds]
        for method in study.methods))
    return [run for runs in rounds for run in runs if run]


def digest(content) -> str:
    """12 hexadecimal digits of a part of a config."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def config_digest(cfg: Config) -> str:
    """A digest of a run's config, the same for all its seeds and folders."""
    return digest(comparable(cfg))


def comparable(cfg: Config) -> dict[str, Any]:
    """A run's config without seed, launcher and work dir."""
    content = cfg.to_dict()
    for key in ('work_dir', 'launcher'):
        content.pop(key, None)
    randomness = content.pop('randomness', {})
    randomness.pop('seed', None)
    if randomness:  # a config without it equals one with a seed alone
        content['randomness'] = randomness
    return content
