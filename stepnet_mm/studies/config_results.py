"""Which records are of a config just as it is."""
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from mmengine.config import Config

from ..config import read_config
from .records import StudyRecord, evaluated_on, read_records
from .run import config_digest
from .statistics import spread
from .tables import places, spread_text
from .training_log import dataset_of


def records_of_configs(files: Iterable, configs: Mapping[Path, list[Path]]
                       ) -> dict[Path, list[StudyRecord]]:
    """The runs of each config that a study trained without any change.

    Reading a config is slow, so only those are read whose base fits a record
    that is not yet assigned.

    Args:
        files (iterable[str | Path]): record files, of any settings.
        configs (mapping): a base config, which gives what is tested on and
            is named ``..._<dataset>.py``, -> configs that inherit it.

    Returns:
        dict: a config -> its records; without configs that have none.
    """
    by_digest = _by_digest(files)
    found = {}
    for base, paths in configs.items():
        left = {digest: own for digest, own in by_digest.items()
                if _fits(base, own)}
        for path in paths:
            if left and (own := left.pop(config_digest(
                    read_config(str(path))), [])):
                found[path] = own
    return found


def result_text(records: list[StudyRecord]) -> str:
    """What the runs of one config gave, in a few words."""
    values = [r.last for r in records if r.last is not None]
    mean = spread_text(spread(values), places(records))
    lost = len(records) - len(values)
    what = f'{records[0].metric} {mean}' if values else 'no result'
    return ', '.join(filter(None, (
        f'{what} after the last epoch',
        f'{len(values)} runs' if len(values) > 1 else '',
        f'{lost} diverged' if lost else '', max(r.date for r in records))))


def _by_digest(files: Iterable) -> dict[str, list[StudyRecord]]:
    """The runs of each config; one that is in two files counts once."""
    runs: dict[str, dict[tuple, StudyRecord]] = {}
    for path in files:
        for record in read_records(path):
            runs.setdefault(record.config, {}).setdefault(
                (record.seed, record.made_on), record)
    return {digest: [*own.values()] for digest, own in runs.items()}


def _fits(base: Path, records: list[StudyRecord]) -> bool:
    """Whether some of a config's runs were tested on a base's data."""
    name = base.stem.rpartition('_')[2]
    tested = {r.test_data for r in records
              if name in r.dataset_type.lower()}
    return bool(tested) and _test_data(base) in tested


@lru_cache
def _test_data(base: Path) -> str:
    return evaluated_on(dataset_of(Config.fromfile(str(base))))
