"""A study file: which methods, with which seeds, under which settings."""
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.config import Config

#: The keys of a study file; the first has to be there.
KEYS = ('methods', 'seeds', 'options', 'metric', 'measure', 'seconds')
METHOD_KEYS = ('config', 'options', 'seeds', 'paper')
MEASURE = dict(num_samples=2000, definitions=['residual'])


@dataclass(frozen=True)
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
    """
    name: str
    config: Path
    options: dict[str, Any]
    seeds: list[int]
    paper: str | None = None


@dataclass(frozen=True)
class Study:
    """A study file, checked.

    Attributes:
        name (str): the file's, without its suffix.
        path (Path): the file.
        methods (list[StudyMethod]): in the order of the file.
        metric (str): the key of what is compared, such as
            ``'accuracy/top1'``.
        measure (dict): ``num_samples`` and ``definitions`` of NSI, measured
            on the same images of the validation split after training.
        seconds (float | None): what a run is expected to take.
        settings (str): a digest of what all methods have in common; records
            with another one do not compare.
    """
    name: str
    path: Path
    methods: list[StudyMethod]
    metric: str
    measure: dict[str, Any]
    seconds: float | None
    settings: str


def read_study(path) -> Study:
    """Read a study file.

    Args:
        path (str | Path): a config with ``methods``: a name -> ``config``,
            relative to this file, and, where they differ from the study's,
            ``options`` and ``seeds``. At the top ``seeds``, ``options`` for
            all methods, ``metric``, ``measure`` and ``seconds``.

    Raises:
        FileNotFoundError: if the file, or a config that it names, is gone.
        ValueError: on a wrong key or value.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'{path}: expected a study file, got no such '
                                'file; configs/studies has some')
    content = Config.fromfile(str(path)).to_dict()
    _check_keys(path, 'the study', content, KEYS)
    methods = content.get('methods')
    if not isinstance(methods, dict) or not methods:
        raise ValueError(f'{path}: methods: expected a dict, a config for '
                         f'each name, got {methods!r:.100}')
    measure = {**MEASURE, **content.get('measure', {})}
    _check_keys(path, 'measure', measure, tuple(MEASURE))
    metric = content.get('metric', 'accuracy/top1')
    shared = dict(options=content.get('options', {}), metric=metric,
                  measure=measure)
    return Study(
        name=path.stem,
        path=path,
        methods=[_method(path, name, fields, content)
                 for name, fields in methods.items()],
        metric=metric,
        measure=measure,
        seconds=content.get('seconds'),
        settings=digest(shared))


def digest(content) -> str:
    """12 digits that change with anything in a part of a config."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _method(path: Path, name: str, fields, content: dict) -> StudyMethod:
    where = f'methods.{name}'
    if not isinstance(fields, dict) or 'config' not in fields:
        raise ValueError(f'{path}: {where}: expected a dict with config, got '
                         f'{fields!r:.100}')
    if not name.replace('_', '').isalnum() or '_seed' in name:
        raise ValueError(f'{path}: {where}: expected a name of letters, '
                         "digits and _, without '_seed', which names files; "
                         'rename it')
    _check_keys(path, where, fields, METHOD_KEYS)
    config = path.parent / fields['config']
    if not config.is_file():
        raise FileNotFoundError(
            f'{path}: {where}.config: expected a config file, got {config}, '
            'which is not there; it is relative to the study file')
    seeds = fields.get('seeds', content.get('seeds', [0]))
    if not (isinstance(seeds, list) and seeds and len(set(seeds)) == len(seeds)
            and all(type(seed) is int and seed >= 0 for seed in seeds)):
        raise ValueError(f'{path}: {where}.seeds: expected different numbers '
                         f'from 0, got {seeds!r}')
    options = {**content.get('options', {}), **fields.get('options', {})}
    return StudyMethod(name, config, options, seeds, fields.get('paper'))


def _check_keys(path: Path, where: str, content: dict, keys: tuple) -> None:
    unknown = sorted(set(content) - set(keys))
    if unknown:
        raise ValueError(f'{path}: {where}: expected some of {list(keys)}, '
                         f'got {unknown}; correct the names')
