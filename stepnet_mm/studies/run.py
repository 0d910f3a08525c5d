"""One run of a study: its folder, its config."""
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ..config import read_config
from ..safe_loading.config_text import settings_of
from ..utils.file_lock import file_lock
from ..utils.files import differing_files, written_whole
from .study import Study, StudyMethod, digest

#: Changes of a config that an error names.
NAMED = 5


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
            raise misfit(self.study, self.method, error) from None
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


def misfit(study: Study, method: StudyMethod, error: Exception) -> ValueError:
    """What to raise where a method has no config, because of an error."""
    return ValueError(
        f'{study.path}: methods.{method.name}: expected a config and options '
        f'that fit it, got {type(error).__name__}: {error}, of '
        f'{method.config}; correct config or options')


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


def config_digest(cfg: Config) -> str:
    """A digest of a run's config, the same for all its seeds and folders."""
    return digest(comparable(cfg))


def comparable(cfg: Config) -> dict[str, Any]:
    """What of a run's config is the same for all its seeds and folders."""
    content = cfg.to_dict()
    for key in ('work_dir', 'launcher'):
        content.pop(key, None)
    randomness = content.pop('randomness', {})
    randomness.pop('seed', None)
    if randomness:  # a config without it equals one with a seed alone
        content['randomness'] = randomness
    return content


def _changes(begun: Mapping, now: Mapping, above: str = '') -> Iterator[str]:
    for name in {**begun, **now}:
        key = f'{above}{name}'
        old, new = (own.get(name, 'not there') for own in (begun, now))
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changes(old, new, f'{key}.')
        elif digest(old) != digest(new):
            yield f'{key}: {old!r:.60} -> {new!r:.60}'
