"""A study file, and its runs: each a method with a seed, in a folder."""
import ast
import copy
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from mmengine.config import Config

from stepnet_mm.config import read_config
from stepnet_mm.config.digests import comparable, digest
from stepnet_mm.safe_loading.config_text import settings_of
from stepnet_mm.stiffness import DEFINITIONS
from stepnet_mm.utils.files import differing_files, written_whole

#: The keys of a study file and their defaults; None is the default, too.
STUDY: dict[str, Any] = dict(
    methods={}, seeds=[0], options={}, metric='accuracy/top1', measure={},
    baselines=[], pooled=True)
#: Those of a method; the defaults of `seeds` and `pooled` are the study's.
METHOD: dict[str, Any] = dict(
    config='', options={}, seeds=[], paper='', baseline='', pooled=True)
MEASURE: dict[str, Any] = dict(
    num_samples=2000, definitions=['residual'], ablate_steps=False,
    robustness=False)
#: Names of methods, which name files.
NAME = re.compile(r'(?!.*_seed)\w{1,100}', re.ASCII)
#: Changes of a config that an error names.
NAMED = 5


@dataclass(frozen=True, eq=False)
class StudyMethod:
    """One method of a study; docs/studies.md has the keys.

    The options are those of the study and of the method.
    """
    name: str
    config: Path
    options: dict[str, Any]
    seeds: list[int]
    paper: str = ''
    baseline: str = ''
    pooled: bool = True


@dataclass(frozen=True, eq=False)
class Study:
    """A study file; docs/studies.md has the keys.

    Attributes:
        name (str): of the file, without its suffix.
        path (Path): of the file.
        methods (list[StudyMethod]): in the order of the file.
        metric (str): the metric to compare.
        measure (dict): the measurements after training.
        baselines (list[str]): methods with which the report compares all.
        settings (str): digest of the settings that all methods share;
            records of different settings do not compare.
    """
    name: str
    path: Path
    methods: list[StudyMethod]
    metric: str
    measure: dict[str, Any]
    baselines: list[str]
    settings: str

    @property
    def about(self) -> str:
        """The docstring of the file."""
        return ast.get_docstring(ast.parse(self.path.read_text())) or ''


def read_study(path) -> Study:
    """Read a study file.

    Args:
        path (str | Path): a config in Python.

    Raises:
        ValueError: if it cannot be read, or on a wrong key or value.
    """
    path = Path(path)
    try:
        content = Config.fromfile(str(path)).to_dict()
    except Exception as error:  # it is code, and may raise anything
        raise ValueError(f'{path}: expected a study file, got '
                         f'{type(error).__name__}: {error}; correct it, or '
                         'its base') from None
    content = _with_defaults(f'{path}: ', content, STUDY)
    measure = _with_defaults(f'{path}: measure.', content['measure'], MEASURE)
    if not content['methods']:
        raise ValueError(f'{path}: methods: expected a config for each name, '
                         'got none; add some')
    if measure['num_samples'] < 1 or {*measure['definitions']} - {
            *DEFINITIONS}:
        raise ValueError(
            f'{path}: measure: expected num_samples from 1, definitions of '
            f'{DEFINITIONS}, got {measure}; correct it')
    shared = dict(options=content['options'], metric=content['metric'],
                  measure={key: measure[key]
                           for key in ('num_samples', 'definitions')})
    return Study(
        name=path.stem,
        path=path,
        methods=[_method(path, name, fields, content)
                 for name, fields in content['methods'].items()],
        metric=content['metric'],
        measure=measure,
        baselines=content['baselines'],
        settings=digest(shared))


def _with_defaults(where: str, given, defaults: dict) -> dict[str, Any]:
    """What a part of the file says; each value has its default's type."""
    if not isinstance(given, dict):
        raise ValueError(f'{where}: expected a dict, got {given!r:.100}; '
                         'correct it')
    given = {key: value for key, value in given.items() if value is not None}
    for key, value in given.items():
        if key not in defaults:
            raise ValueError(f'{where}{key}: expected some of {[*defaults]}, '
                             f'got {key!r}; correct the name')
        kind = type(defaults[key])
        if not isinstance(value, kind):
            raise ValueError(f'{where}{key}: expected {kind.__name__}, got '
                             f'{value!r:.100}; correct it')
    return {**defaults, **given}


def _method(path: Path, name: str, fields, study: dict) -> StudyMethod:
    where = f'{path}: methods.{name}.'
    if not NAME.fullmatch(str(name)):
        raise ValueError(
            f'{where[:-1]}: expected a name of at most 100 letters (a to z), '
            f"digits and _, without '_seed', got {name!r}; correct it")
    given = _with_defaults(where, fields, dict(
        METHOD, seeds=study['seeds'], pooled=study['pooled']))
    if not given['seeds'] or not all(
            type(seed) is int and seed >= 0 for seed in given['seeds']):
        raise ValueError(f'{where}seeds: expected numbers from 0, got '
                         f'{given["seeds"]}; correct them')
    return StudyMethod(name, **dict(
        given, config=Path(os.path.normpath(path.parent / given['config'])),
        options={**study['options'], **given['options']}))


def check_names(key: str, names: Iterable[str],
                known: Iterable[str]) -> None:
    """Check that names are known.

    Raises:
        ValueError: if one is not; lists the known names.
    """
    known = list(known)
    if unknown := sorted({*names} - {*known}):
        raise ValueError(f'{key}: expected some of {known}, got {unknown}; '
                         'correct the names')


@dataclass(frozen=True)
class StudyRun:
    """A method with a seed, in a folder of a study's work dir.

    Attributes:
        study (Study): its study.
        method (StudyMethod): its method.
        seed (int): its seed.
        work_dir (Path): of the study.
    """
    study: Study
    method: StudyMethod
    seed: int
    work_dir: Path

    @property
    def name(self) -> str:
        """<method>_seed<seed>, as the other tools read it."""
        return f'{self.method.name}_seed{self.seed}'

    @property
    def folder(self) -> Path:
        """Its work dir."""
        return self.work_dir / self.name

    @property
    def config_file(self) -> Path:
        """The config that it is trained from, with all bases in it."""
        return self.work_dir / 'configs' / f'{self.name}.py'

    def stiffness_file(self, definition: str) -> Path:
        """The record of its NSI by a definition."""
        return self.folder / f'stiffness_{definition}.jsonl'

    @property
    def ablation_file(self) -> Path:
        """The result of tools/analysis/ablate_steps.py."""
        return self.folder / 'ablation' / 'steps.json'

    @property
    def robustness_file(self) -> Path:
        """The result of tools/analysis/robustness.py."""
        return self.folder / 'robustness.json'

    def config(self) -> Config:
        """The resolved config.

        Raises:
            ValueError: if a base is gone, or an option does not fit.
        """
        try:
            cfg = copy.deepcopy(_config_of(self.method))
        except Exception as error:  # a config is code, and may raise anything
            raise ValueError(
                f'{self.study.path}: methods.{self.method.name}: expected a '
                'config and options that fit it, got '
                f'{type(error).__name__}: {error}, of {self.method.config}; '
                'correct config or options') from None
        cfg.work_dir = str(self.folder)
        cfg.merge_from_dict({'randomness.seed': self.seed})
        return cfg

    def check_config(self) -> None:
        """Check that the run can begin or go on.

        The config in the work dir is read as data: nothing of it is executed.

        Raises:
            ValueError: if the run was begun with another config; names the
                first keys, old and new values.
        """
        if not self.config_file.is_file():
            return
        try:
            begun = Config(settings_of(self.config_file.read_bytes()))
        except (ValueError, KeyError) as error:  # it may come from elsewhere
            raise ValueError(
                f'{self.config_file}: expected settings as a study writes '
                f'them, got {error}; delete the file, and the run begins '
                'anew') from None
        changes = ', '.join(islice(_changes(
            comparable(begun), comparable(self.config())), NAMED))
        if changes:
            raise ValueError(
                f'{self.name}: expected the config that it was begun with, '
                f'{self.config_file}, got another one from {self.study.path} '
                f'({changes}); take back the change, or delete {self.folder} '
                'and that file to begin anew')

    def write_config(self) -> None:
        """Write :attr:`config_file`: the tools execute no other text.

        Raises:
            ValueError: as :meth:`check_config`.
        """
        self.check_config()
        text = self.config().pretty_text
        if differing_files({self.config_file: text}):
            with written_whole(self.config_file) as file:
                file.write(text.encode())


def runs_of(study: Study, work_dir: Path) -> list[StudyRun]:
    """All runs of a study: every method's first seed, then the second, ...

    Args:
        study (Study): the study.
        work_dir (Path): its folder.
    """
    rounds = max(len(method.seeds) for method in study.methods)
    return [
        StudyRun(study, method, method.seeds[i], work_dir)
        for i in range(rounds) for method in study.methods
        if i < len(method.seeds)
    ]


@lru_cache(None)
def _config_of(method: StudyMethod) -> Config:
    """Read once, since that takes longer than all else before a start."""
    return read_config(str(method.config), 'work_dir', dict(method.options))


def _changes(begun: Mapping, now: Mapping, above: str = '') -> Iterator[str]:
    for name in {**begun, **now}:
        key = f'{above}{name}'
        old, new = (own.get(name, 'not there') for own in (begun, now))
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changes(old, new, f'{key}.')
        elif digest(old) != digest(new):
            yield f'{key}: {old!r:.60} -> {new!r:.60}'
