"""Which records are of a config just as it is."""
from collections.abc import Iterable, Mapping
from pathlib import Path

from mmengine.config import Config

from ..config import read_config
from .records import StudyRecord, read_records
from .run import config_digest
from .statistics import spread
from .tables import places, spread_text
from .training_log import dataset_of


def records_of_configs(files: Iterable, configs: Mapping[Path, list[Path]]
                       ) -> dict[Path, list[StudyRecord]]:
    """The runs of each config that a study trained without any change.

    Args:
        files (iterable[str | Path]): record files, of any settings.
        configs (mapping): a base config, which gives the data and the number
            of epochs, -> configs that inherit it. Only those whose base fits
            some record are read, as reading takes a second for a few.

    Returns:
        dict: a config -> its records; without configs that have none.
    """
    by_digest: dict[str, list[StudyRecord]] = {}
    for path in files:
        for record in read_records(path):
            by_digest.setdefault(record.config, []).append(record)
    known = {(r.dataset, len(r.epochs))
             for own in by_digest.values() for r in own}
    return {
        path: by_digest[digest]
        for base, paths in configs.items() if _frame(base) in known
        for path in paths
        if (digest := config_digest(read_config(str(path)))) in by_digest
    }


def result_text(records: list[StudyRecord]) -> str:
    """What the runs of one config gave, in a few words."""
    values = [r.last for r in records if r.last is not None]
    mean = spread_text(spread(values), places(records))
    lost = len(records) - len(values)
    what = f'{records[0].metric} {mean}' if values else 'no result'
    return ', '.join(filter(None, (
        f'{what} after the last epoch', f'{len(values)} runs',
        f'{lost} diverged' if lost else '', max(r.date for r in records))))


def _frame(base: Path) -> tuple[str, int]:
    """A base's data and epochs, as a record has them."""
    cfg = Config.fromfile(str(base))
    return dataset_of(cfg), cfg.train_cfg.get('max_epochs', 0)
