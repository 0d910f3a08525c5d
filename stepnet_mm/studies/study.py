"""A study file: which methods, with which seeds, under which settings."""
import hashlib
import json
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ..config_path import config_path
from ..stiffness import DEFINITIONS

#: The keys of a study file; the first has to hold something.
DEFAULTS: dict[str, Any] = dict(
    methods={}, seeds=[0], options={}, metric='accuracy/top1', measure={},
    seconds=None, baselines=None)
#: Baselines of studies that name none; 'none' and 'all' are methods of
#: tools/analysis/lottery_configs.py.
BASELINES = ('plain', 'se', 'constant', 'none', 'all')
#: Of a method, whose folders have it.
NAME = re.compile(r'(?!.*_seed)\w{1,100}', re.ASCII)
METHOD_KEYS = ('config', 'options', 'seeds', 'paper', 'baseline')
MEASURE: dict[str, Any] = dict(
    num_samples=2000, definitions=['residual'], ablate_steps=False,
    robustness=False)
#: What of it changes the numbers that records compare.
COMPARED = ('num_samples', 'definitions')


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
    """
    name: str
    config: Path
    options: dict[str, Any]
    seeds: list[int]
    paper: str | None = None
    baseline: str | None = None


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
        seconds (float | None): what a run is expected to take.
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
    seconds: float | None
    baselines: list[str] | None
    settings: str


def read_study(path) -> Study:
    """Read a study file.

    Args:
        path (str | Path): a config with ``methods``: a name -> ``config``,
            relative to this file, and, where they differ from the study's,
            ``options`` and ``seeds``; ``paper`` and ``baseline``. At the top
            ``seeds``, ``options`` for all methods, ``metric``, ``measure``,
            ``seconds`` and ``baselines``.

    Raises:
        FileNotFoundError: if the file, or a config that it names, is gone.
        ValueError: on a wrong key or value.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'{path}: expected a study file, got no such '
                                'file; configs/studies has some')
    content = _content(path)
    metric, measure = content['metric'], content['measure']
    shared = dict(options=content['options'], metric=metric,
                  measure={key: measure[key] for key in COMPARED})
    return Study(
        name=path.stem,
        path=path,
        methods=[_method(path, name, fields, content)
                 for name, fields in content['methods'].items()],
        metric=metric,
        measure=measure,
        seconds=content['seconds'],
        baselines=content['baselines'],
        settings=digest(shared))


def methods_of(studies: list[Study]) -> list[StudyMethod]:
    """Those of all studies, each name once."""
    found: dict[str, StudyMethod] = {}
    for study in studies:
        for method in study.methods:
            found.setdefault(method.name, method)
    return list(found.values())


def baselines_of(studies: list[Study]) -> list[str]:
    """What the studies name, else the usual ones, each once.

    Those are left out that are no method of these studies.
    """
    names = {method.name for method in methods_of(studies)}
    found = dict.fromkeys(name for study in studies
                          for name in study.baselines or ())
    return [name for name in found or BASELINES if name in names]


def digest(content) -> str:
    """12 digits that change with anything in a part of a config."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _content(path: Path) -> dict[str, Any]:
    """All keys of a study file, checked but for each method's."""
    try:
        content = Config.fromfile(str(path)).to_dict()
    except Exception as error:  # it is code, and may raise anything
        raise ValueError(f'{path}: expected a study file in Python, got '
                         f'{type(error).__name__}: {error}; correct it, or '
                         'its base') from None
    _check_keys(path, 'the study', content, tuple(DEFAULTS))
    content = {**DEFAULTS, **content}
    for key in ('methods', 'options', 'measure'):
        _expect(path, key, isinstance(content[key], dict), 'a dict',
                content[key])
    metric = content['metric']
    _expect(path, 'metric', isinstance(metric, str) and bool(metric),
            'what is compared, as the log names it', metric)
    _expect(path, 'methods', bool(content['methods']),
            'a config for each name', content['methods'])
    seconds = content['seconds']
    _expect(path, 'seconds', seconds is None or isinstance(
        seconds, (int, float)) and seconds > 0, 'a time', seconds)
    names = content['baselines']
    _expect(path, 'baselines', names is None or isinstance(names, list)
            and all(isinstance(name, str) for name in names),
            'names of methods', names)
    content['measure'] = _measure(path, content['measure'])
    return content


def _measure(path: Path, given: dict) -> dict[str, Any]:
    _check_keys(path, 'measure', given, tuple(MEASURE))
    measure = {**MEASURE, **given}
    number, names = measure['num_samples'], measure['definitions']
    _expect(path, 'measure.num_samples', type(number) is int and number > 0,
            'a number from 1', number)
    _expect(path, 'measure.definitions', isinstance(names, list)
            and all(name in DEFINITIONS for name in names),
            f'some of {DEFINITIONS}', names)
    for key in ('ablate_steps', 'robustness'):
        _expect(path, f'measure.{key}', isinstance(measure[key], bool),
                'True or False', measure[key])
    return measure


def _expect(path: Path, key: str, fits: bool, what: str, got) -> None:
    if not fits:
        raise ValueError(f'{path}: {key}: expected {what}, got {got!r:.100}; '
                         'correct it')


def _method(path: Path, name: str, fields, content: dict) -> StudyMethod:
    where = f'methods.{name}'
    if not isinstance(fields, dict) or 'config' not in fields:
        raise ValueError(f'{path}: {where}: expected a dict with config, got '
                         f'{fields!r:.100}')
    if not NAME.fullmatch(str(name)):
        raise ValueError(f'{path}: {where}: expected a name of at most 100 '
                         "letters (a to z), digits and _, without '_seed', "
                         'which names files; rename it')
    _check_keys(path, where, fields, METHOD_KEYS)
    for key, kind in (('config', str), ('options', dict)):
        value = fields.get(key, {})
        _expect(path, f'{where}.{key}', isinstance(value, kind),
                f'a {kind.__name__}', value)
    paper = fields.get('paper')
    _expect(path, f'{where}.paper', paper is None or _is_config(paper),
            "the name of a config of this package, without '.py'", paper)
    baseline = fields.get('baseline')
    _expect(path, f'{where}.baseline', baseline is None
            or isinstance(baseline, str), 'the name of a method', baseline)
    config = Path(os.path.normpath(path.parent / fields['config']))
    if not config.is_file():
        raise FileNotFoundError(
            f'{path}: {where}.config: expected a config file, got {config}, '
            'which is not there; it is relative to the study file')
    seeds = fields.get('seeds', content['seeds'])
    if not (isinstance(seeds, list) and seeds
            and all(type(seed) is int and seed >= 0 for seed in seeds)
            and len(set(seeds)) == len(seeds)):
        raise ValueError(f'{path}: {where}.seeds: expected different numbers '
                         f'from 0, got {seeds!r:.100}')
    options = {**content['options'], **fields.get('options', {})}
    return StudyMethod(name, config, options, seeds, paper, baseline)


def _is_config(name) -> bool:
    try:
        return isinstance(name, str) and Path(config_path(name)).stem == name
    except ValueError:
        return False


def _check_keys(path: Path, where: str, content: dict, keys: tuple) -> None:
    unknown = sorted(map(str, set(content) - set(keys)))
    if unknown:
        near = get_close_matches(unknown[0], keys, 1)
        hint = f'{near[0]!r} may be meant' if near else 'correct the names'
        raise ValueError(f'{path}: {where}: expected some of {list(keys)}, '
                         f'got {unknown}; {hint}')
