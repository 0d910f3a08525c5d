"""Results of the runs of a study: one JSON line each."""
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from math import inf

from study_file import StudyRun, config_digest, digest

from stepnet_mm.json_lines import end_last_line, read_lines
from stepnet_mm.utils.file_lock import file_lock, lock_beside

FORMAT = 'stepnet_mm study record 1'


@dataclass
class StudyRecord:
    """One run; docs/studies.md says what each field holds."""
    study: str
    method: str
    seed: int
    settings: str
    config: str
    dataset: str
    metric: str
    epochs: list = field(default_factory=list)
    diverged: bool = False
    last: int | float | None = None
    best: int | float | None = None
    stiffness: dict = field(default_factory=dict)
    steps: dict = field(default_factory=dict)
    robustness: dict = field(default_factory=dict)
    test: dict = field(default_factory=dict)
    commit: str = ''
    versions: dict = field(default_factory=dict)
    device: str = 'cpu'
    machine: str = ''
    cpu_seconds: int | float = 0.
    wall_seconds: int | float = 0.
    date: str = ''

    def __post_init__(self):
        values = ((f, getattr(self, f.name)) for f in fields(self))
        wrong = [f.name for f, value in values if not isinstance(value, f.type)
                 or isinstance(value, bool) and f.type is not bool]
        if wrong or self.diverged != (self.last is None):
            raise ValueError(f'expected the fields of a run, got {wrong} of '
                             'another type, or no last; run it again')

    @property
    def name(self) -> str:
        """<method>_seed<seed>, as its run is called."""
        return f'{self.method}_seed{self.seed}'

    @property
    def test_data(self) -> str:
        """Type and digest; some methods train on other images."""
        kind, _, digests = self.dataset.partition(' ')
        return f'{kind} {digests.rpartition("/")[2]}'


def planned(run: StudyRun) -> StudyRecord:
    """The record of a run without its results."""
    cfg = run.config()
    content = cfg.to_dict()  # a config of Python modules has classes in it
    try:
        train, val = (dict(content[f'{split}_dataloader']['dataset'])
                      for split in ('train', 'val'))
    except (KeyError, TypeError):
        raise ValueError(
            f'{run.method.config}: expected train_dataloader and '
            'val_dataloader, got a config without; set both') from None
    for dataset in train, val:
        dataset.pop('data_root', None)
    return StudyRecord(
        study=run.study.name, method=run.method.name, seed=run.seed,
        settings=run.study.settings, config=config_digest(cfg),
        dataset=f'{train["type"]} {digest(train)}/{digest(val)}',
        metric=run.study.metric, diverged=True)


def read_records(*paths) -> list[StudyRecord]:
    """The runs in record files, which must compare."""
    rows = [row for path in paths for row in located_records(path)]
    check_comparable(rows)
    return [record for _, record in rows]


def append_record(path, record: StudyRecord) -> None:
    """Add a run to a file, as a whole line or not at all."""
    line = json.dumps(dict(format=FORMAT, **asdict(record)), allow_nan=False)
    with file_lock(lock_beside(path), wait=inf), open(path, 'a+b') as file:
        check_comparable([*located_records(path),
                          (f'{path}: a new line', record)])
        end_last_line(file)
        file.write(line.encode() + b'\n')
        file.flush()
        os.fsync(file.fileno())


def check_comparable(rows: Iterable[tuple[str, StudyRecord]]) -> None:
    """Raise ValueError unless records compare; rows of (place, record)."""
    first: dict[tuple, tuple[str, str]] = {}
    for where, record in rows:
        # What rounds its numbers: processor and threads, or the GPU.
        run = (record.name, record.machine if record.device == 'cpu'
               else record.device)
        if run in first:
            raise ValueError(
                f'{where}: expected one record of each run, got that of '
                f'{first[run][0]} again; delete one of them')
        first[run] = where, ''
        for key in 'settings', 'metric', 'test_data', 'config':
            value = getattr(record, key)
            there, wanted = first.setdefault(
                (key, record.method if key == 'config' else ''),
                (where, value))
            if value != wanted:
                raise ValueError(
                    f'{where}: expected {key} {wanted!r} as in {there}, got '
                    f'{value!r}, which do not compare; take back the change, '
                    'or name another file of records')


def located_records(path) -> list[tuple[str, StudyRecord]]:
    """The records of a file, each with its place in it for messages.

    A file that is not there has none.
    """
    def parse(number: int, content: dict) -> tuple[str, StudyRecord]:
        if content.pop('format') != FORMAT:
            raise ValueError('another format')
        return f'{path}: line {number}', StudyRecord(**content)

    try:
        with open(path, 'rb') as file:
            return read_lines(
                file, parse, 'a record of a run',
                'delete that line, and tools/study.sh makes it again')
    except FileNotFoundError:
        return []
