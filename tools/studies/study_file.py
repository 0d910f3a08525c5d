"""A study file, and its runs: each a method with a seed, in a folder."""
import ast
import copy
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from mmengine.config import Config

from stepnet_mm.config import read_config
from stepnet_mm.config.digests import comparable, digest
from stepnet_mm.config_path import config_path
from stepnet_mm.safe_loading.config_text import settings_of
from stepnet_mm.stiffness import DEFINITIONS
from stepnet_mm.utils.file_lock import file_lock
from stepnet_mm.utils.files import differing_files, written_whole

#: The keys of a study file.
DEFAULTS: dict[str, Any] = dict(
    methods={}, seeds=[0], options={}, metric='accuracy/top1', measure={},
    baselines=None, pooled=True)
#: Of a method; `pooled` and `seeds` otherwise than the study's.
METHOD: dict[str, Any] = dict(
    config='', options={}, seeds=[0], paper=None, baseline=None, pooled=True)
MEASURE: dict[str, Any] = dict(
    num_samples=2000, definitions=['residual'], ablate_steps=False,
    robustness=False)
#: What of it changes the numbers that records compare.
COMPARED = ('num_samples', 'definitions')
#: Controls of studies that name none.
BASELINES = ('plain', 'se', 'constant', 'none', 'all')
#: Of a method, whose folders have it.
NAME = re.compile(r'(?!.*_seed)\w{1,100}', re.ASCII)
#: Changes of a config that an error names.
NAMED = 5


@dataclass(frozen=True, eq=False)
class StudyMethod:
    """One method of a study.

    Attributes:
        name (str): what records and tables call it.
        config (Path): the config that it is trained from.
        options (dict): changes to that config, ``a.b=c``, the study's own
            first.
        seeds (list[int]): one run each.
        paper (str | None): the config whose figure of the paper stands
            beside it, by its name.
        baseline (str | None): a method that the report compares it with,
            beside those that it compares every one with.
        pooled (bool): whether its standard deviation pools with the others'.
    """
    name: str
    config: Path
    options: dict[str, Any]
    seeds: list[int]
    paper: str | None = None
    baseline: str | None = None
    pooled: bool = True


@dataclass(frozen=True)
class Study:
    """A study file, checked.

    Attributes:
        name (str): the file's, without its suffix.
        path (Path): the file.
        methods (list[StudyMethod]): in the order of the file.
        metric (str): the key of what is compared, such as
            ``'accuracy/top1'``.
        measure (dict): after training, ``num_samples`` and ``definitions``
            of NSI on the same images of the validation split; whether to
            ``ablate_steps``: to evaluate with Δt held fixed; and whether to
            measure ``robustness``: to evaluate on disturbed images.
        baselines (list[str] | None): methods that the report compares every
            one with; None leaves it to the report.
        settings (str): a digest of what all methods have in common; records
            with another one do not compare.
    """
    name: str
    path: Path
    methods: list[StudyMethod]
    metric: str
    measure: dict[str, Any]
    baselines: list[str] | None
    settings: str

    @property
    def about(self) -> str:
        """The docstring of the file."""
        return ast.get_docstring(ast.parse(self.path.read_text())) or ''


def read_study(path) -> Study:
    """Read a study file.

    Args:
        path (str | Path): a config with ``methods``: a name -> ``config``,
            relative to this file, and, where they differ from the study's,
            ``options``, ``seeds`` and ``pooled``; ``paper`` and ``baseline``.
            At the top ``seeds``, ``options`` for all methods, ``metric``,
            ``measure``, ``baselines`` and ``pooled``.

    Raises:
        FileNotFoundError: if the file, or a config that it names, is gone.
        ValueError: on a wrong key or value.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'{path}: expected a study file, got no such '
                                'file; configs/studies has some')
    try:
        content = Config.fromfile(str(path)).to_dict()
    except Exception as error:  # it is code, and may raise anything
        raise ValueError(f'{path}: expected a study file in Python, got '
                         f'{type(error).__name__}: {error}; correct it, or '
                         'its base') from None
    content = _checked(path, '', content, DEFAULTS)
    measure = _checked(path, 'measure.', content['measure'], MEASURE)
    _expect(path, 'methods', content['methods'], 'a config for each name')
    _expect(path, 'metric', content['metric'], 'what is compared')
    _expect(path, 'baselines', content['baselines'], 'names of methods', all(
        isinstance(name, str) for name in content['baselines'] or ())
            and not isinstance(content['baselines'], str))
    _expect(path, 'measure', measure, 'num_samples from 1, definitions of '
            f'{DEFINITIONS}', measure['num_samples'] > 0
            and all(name in DEFINITIONS for name in measure['definitions']))
    shared = dict(options=content['options'], metric=content['metric'],
                  measure={key: measure[key] for key in COMPARED})
    return Study(
        name=path.stem,
        path=path,
        methods=[_method(path, name, fields, content)
                 for name, fields in content['methods'].items()],
        metric=content['metric'],
        measure=measure,
        baselines=content['baselines'],
        settings=digest(shared))


def _checked(path: Path, above: str, given, defaults: dict) -> dict[str, Any]:
    """A part of a study file with its defaults, whose types hold."""
    _expect(path, above.rstrip('.') or 'the study', given, 'a dict',
            isinstance(given, dict))
    if unknown := sorted(map(str, {*given} - {*defaults})):
        near = get_close_matches(unknown[0], defaults, 1)
        hint = f'{near[0]!r} may be meant' if near else 'correct the names'
        raise ValueError(f'{path}: {above}{unknown[0]}: expected some of '
                         f'{list(defaults)}, got {unknown}; {hint}')
    for key, value in given.items():
        default = defaults[key]
        kinds = {dict: 'a dict', list: 'a list', str: 'a text',
                 int: 'a number', bool: 'True or False'}
        _expect(path, f'{above}{key}', value,
                kinds.get(type(default), 'a name or names'),
                isinstance(value, (str, list, type(None)))
                if default is None else type(value) is type(default))
    return {**defaults, **given}


def _method(path: Path, name: str, fields, study: dict) -> StudyMethod:
    where = f'methods.{name}.'
    _expect(path, 'methods', name, 'names of at most 100 letters (a to z), '
            "digits and _, without '_seed', which names files",
            bool(NAME.fullmatch(str(name))))
    given = dict(_checked(path, where, fields, dict(
        METHOD, seeds=study['seeds'], pooled=study['pooled'])))
    config = Path(os.path.normpath(path.parent / given['config']))
    if not config.is_file():
        raise FileNotFoundError(
            f'{path}: {where}config: expected a config file, got {config}, '
            'which is not there; it is relative to the study file')
    seeds, paper = given['seeds'], given['paper']
    _expect(path, f'{where}seeds', seeds, 'different numbers from 0',
            seeds and all(type(seed) is int and seed >= 0 for seed in seeds)
            and len({*seeds}) == len(seeds))
    _expect(path, f'{where}paper', paper, 'the name of a config of this '
            "package, without '.py'", paper is None or _is_config(paper))
    baseline = given['baseline']
    _expect(path, f'{where}baseline', baseline, 'the name of a method',
            isinstance(baseline, (str, type(None))))
    given.update(config=config, options={**study['options'],
                                         **given['options']})
    return StudyMethod(name, **given)


def _is_config(name) -> bool:
    try:
        return isinstance(name, str) and Path(config_path(name)).stem == name
    except ValueError:
        return False


def _expect(path: Path, key: str, got, what: str, fits=None) -> None:
    """Raise where ``got``, or what else has to be true, is not."""
    if not (got if fits is None else fits):
        raise ValueError(f'{path}: {key}: expected {what}, got {got!r:.100}; '
                         'correct it')


def check_names(key: str, names: Iterable[str],
                known: Iterable[str]) -> None:
    """Check that names are known.

    Raises:
        ValueError: with those that are, if one is not.
    """
    known = list(known)
    if unknown := sorted({*names} - {*known}):
        raise ValueError(f'{key}: expected some of {known}, got {unknown}; '
                         'correct the names')


def methods_of(studies: list[Study]) -> list[StudyMethod]:
    """Those of all studies, each name once."""
    found: dict[str, StudyMethod] = {}
    for study in studies:
        for method in study.methods:
            found.setdefault(method.name, method)
    return list(found.values())


def baselines_of(studies: list[Study]) -> list[str]:
    """The controls that the studies name, else the usual ones, each once."""
    names = {method.name for method in methods_of(studies)}
    found = dict.fromkeys(name for study in studies
                          for name in study.baselines or ())
    return [name for name in found or BASELINES if name in names]


@dataclass(frozen=True)
class StudyRun:
    """A method with a seed, in a folder of a study's work dir.

    Attributes:
        study (Study): which it belongs to.
        method (StudyMethod): which it trains.
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
    def key(self) -> tuple[str, int]:
        """What tells it from the study's other runs."""
        return self.method.name, self.seed

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        return self.work_dir / self.name

    @property
    def config_file(self) -> Path:
        """The config that it is trained from, with all bases in it."""
        return self.work_dir / 'configs' / f'{self.name}.py'

    @property
    def log(self) -> Path:
        """What its processes print."""
        return self.folder / 'output.log'

    def stiffness_file(self, definition: str) -> Path:
        """The record of its NSI by a definition."""
        return self.folder / f'stiffness_{definition}.jsonl'

    @property
    def ablation_file(self) -> Path:
        """What tools/analysis/ablate_steps.py found; its log lies beside."""
        return self.folder / 'ablation' / 'steps.json'

    @property
    def robustness_file(self) -> Path:
        """What tools/analysis/robustness.py found."""
        return self.folder / 'robustness.json'

    @property
    def test_folder(self) -> Path:
        """The work dir of tools/test.py with the best checkpoint."""
        return self.folder / 'test'

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

    def checked_config(self) -> Config:
        """The resolved config, with which the run can begin or go on.

        Raises:
            ValueError: if the run was begun with another config.
        """
        cfg = self.config()
        if changed := self.changes(cfg):
            raise ValueError(
                f'{self.name}: expected the config that it was begun with, '
                f'{self.config_file}, got another one from {self.study.path} '
                f'({changed}); take back the change, or delete {self.folder} '
                'and that file to begin anew')
        return cfg

    def write_config(self) -> Config:
        """Write :attr:`config_file`, which the tools run: its text is ours.

        Raises:
            ValueError: if the run was begun with another config.
        """
        with file_lock(self.config_file.with_name('lock'), wait=True):
            cfg = self.checked_config()
            if differing_files({self.config_file: cfg.pretty_text}):
                with written_whole(self.config_file) as file:
                    file.write(cfg.pretty_text.encode())
        return cfg

    def changes(self, cfg: Config) -> str:
        """What a config has otherwise than the one that the run began with.

        Args:
            cfg (Config): as :meth:`config` gives it.

        Returns:
            str: the first keys, old and new values; empty if there are none,
            or the run was not begun.
        """
        if not self.config_file.is_file():
            return ''
        begun = begun_config(self.config_file)
        found = _changes(comparable(begun), comparable(cfg))
        return ', '.join(islice(found, NAMED))


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


def begun_config(path: Path) -> Config:
    """The config that a run was begun with; nothing in the file is run.

    Args:
        path (Path): as :meth:`StudyRun.write_config` writes it.

    Raises:
        ValueError: if it holds more than settings.
    """
    try:
        return Config(settings_of(path.read_bytes()))
    except (ValueError, KeyError) as error:  # the work dir may be another's
        raise ValueError(
            f'{path}: expected settings as a study writes them, got '
            f'{error}; delete the file, and the run begins anew') from None


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
