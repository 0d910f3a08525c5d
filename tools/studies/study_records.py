"""What came out of the runs of a study: one JSON line each."""
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from study_file import StudyRun

from stepnet_mm.config.digests import config_digest, digest
from stepnet_mm.recording.step_size_ablation import ABLATIONS, STEP_MOMENTS
from stepnet_mm.utils.file_lock import file_lock, lock_beside

FORMAT = 'stepnet_mm study record 1'
#: What records have in common, those of one method alone the config too.
SAME = ('settings', 'metric', 'test_data', 'config')


@dataclass
class StudyRecord:
    """One run.

    Attributes:
        study (str): the study that it was run for.
        method (str): the method's name.
        seed (int): its seed.
        settings (str): digest of what all methods of the study share.
        config (str): digest of the resolved config without its seed.
        dataset (str): what it was trained and tested on, ``TYPE a/b``: a
            digest of each.
        metric (str): the key of the values in ``epochs`` that are compared.
        epochs (list[dict]): of each ``epoch``, the mean ``loss`` over its
            iterations, and what was evaluated after it, by its key.
        diverged (bool): whether the loss became NaN or infinite; such a run
            has neither ``last`` nor ``stiffness``.
        last (float | None): the metric after the last epoch.
        best (float | None): the highest of all epochs.
        stiffness (dict): definition of NSI -> ``tns``, ``tns_median``,
            ``tns_q95``, ``nsi`` (means over samples and blocks), and of each
            measured block ``stage``, ``nsi`` and ``step``.
        steps (dict): where Δt was held fixed: the metric ``trained``, with
            Δt's mean ``per_channel`` and ``per_block``; Δt's ``mean`` and
            standard deviations ``over_samples``, ``over_positions`` and
            ``over_channels``, means over its modules.
        robustness (dict): where it was measured, the top-1 in % on images as
            they are, ``clean``, with noise, such as ``noise_0.02``, and
            on adversarial ones, such as ``fgsm_1``.
        test (dict): where the config has test data of its own and keeps its
            best checkpoint: the ``epoch`` that validation chose, and what was
            evaluated of it on them, by its key.
        commit (str): of this package, with ``-dirty`` where files differed,
            as the training's log has it; several are joined by +.
        versions (dict): of the libraries.
        device (str): ``'cpu'`` or the GPU's name, from that log too.
        machine (str): processor and threads, from that log too;
            ``'unknown'`` where it does not say.
        cpu_seconds (float): processor time of the pieces that came
            to their end.
        wall_seconds (float): how long these ran.
        date (str): of its end.
    """
    study: str
    method: str
    seed: int
    settings: str
    config: str
    dataset: str
    metric: str
    epochs: list[dict] = field(default_factory=list)
    diverged: bool = False
    last: float | None = None
    best: float | None = None
    stiffness: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)
    robustness: dict[str, float | None] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    commit: str = ''
    versions: dict[str, str] = field(default_factory=dict)
    device: str = 'cpu'
    machine: str = ''
    cpu_seconds: float = 0.
    wall_seconds: float = 0.
    date: str = ''

    def __post_init__(self):
        texts = [getattr(self, f.name) for f in fields(self) if f.type is str]
        measured = self.stiffness.values() if isinstance(
            self.stiffness, dict) else [None]
        if not (all(isinstance(text, str) for text in texts)
                and type(self.seed) is int
                and self.diverged == (self.last is None)
                and None not in (self.cpu_seconds, self.wall_seconds)
                and _is_row(dict(last=self.last, best=self.best,
                                 cpu=self.cpu_seconds, wall=self.wall_seconds))
                and isinstance(self.versions, dict)
                and isinstance(self.epochs, list)
                and all(_is_row(epoch, epoch=int) for epoch in self.epochs)
                and all(_is_measurement(found) for found in measured)
                and _is_row(self.steps) and {*self.steps} in (
                    {*ABLATIONS, *STEP_MOMENTS}, set())
                and _is_row(self.robustness)
                and (self.test == {} or _is_row(self.test, epoch=int))):
            raise ValueError(
                f'{self.method!r:.40}, seed {self.seed!r:.20}: expected the '
                'fields of a run, with a finite last unless it diverged, got '
                'others; run it again')

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the study's other runs."""
        return self.method, self.seed

    @property
    def made_on(self) -> str:
        """What rounds its numbers: the GPU, or processor and threads."""
        return self.machine if self.device == 'cpu' else self.device

    @property
    def test_data(self) -> str:
        """Type of the dataset and digest of what it was tested on.

        A method may train on other images: some tricks change them.
        """
        return evaluated_on(self.dataset)


def _is_row(value, **kinds: type) -> bool:
    """Whether it is a dict of finite numbers, None, and these."""
    return isinstance(value, dict) and all(
        type(value.get(key)) is kind for key, kind in kinds.items()) and all(
            number is None or type(number) in (int, float)
            and abs(number) <= sys.float_info.max
            for number in value.values())


def _is_measurement(value) -> bool:
    if not isinstance(value, dict):
        return False
    rest = dict(value)
    blocks = rest.pop('blocks', None)
    return _is_row(rest) and isinstance(blocks, list) and all(
        _is_row(block, stage=int) and {'nsi', 'step'} <= {*block}
        for block in blocks)


def evaluated_on(dataset: str) -> str:
    """``TYPE a/b`` -> ``TYPE b``."""
    kind, _, digests = dataset.partition(' ')
    return f'{kind} {digests.rpartition("/")[2]}'


def dataset_of(cfg) -> str:
    """What a run is trained and evaluated on, in a line.

    Raises:
        ValueError: if the config does not say it.
    """
    content = cfg.to_dict()  # a config of Python modules has classes in it
    parts = []
    for name in ('train_dataloader', 'val_dataloader'):
        if not content.get(name):
            raise ValueError(f'{cfg.filename}: expected a config with a '
                             f'{name}, got none; set one')
        dataset = dict(content[name]['dataset'])
        dataset.pop('data_root', None)
        parts.append(digest(dataset))
    kind = content['train_dataloader']['dataset']['type']
    return f'{kind} {"/".join(parts)}'


def read_records(*paths) -> list[StudyRecord]:
    """The runs in record files, which must compare.

    Args:
        *paths (str | Path): files; one that is not there has no runs. A last
            line without its end, which a kill leaves, is left out.

    Raises:
        ValueError: if a line is no record, a run is there twice from one
            machine, or runs were made under different settings.
    """
    compared = Comparison()
    for path in paths:
        for where, record in _numbered(path):
            compared.add(where, record)
    return compared.records


def check_records(path, runs: Sequence[StudyRun]) -> None:
    """Check, before anything runs, that new records will fit those of a file.

    Args:
        path (str | Path): the file.
        runs (sequence[StudyRun]): what is to run.

    Raises:
        ValueError: if they will not compare with one another, or with those
            of the file.
    """
    compared = Comparison()
    for where, record in _numbered(path):
        compared.add(where, record)
    for run in runs:
        cfg = run.config()
        try:
            compared.hold(f'{run.study.path}: {run.name}', run.method.name, (
                run.study.settings, run.study.metric,
                evaluated_on(dataset_of(cfg)), config_digest(cfg)))
        except ValueError as error:
            if not (changes := run.changes(cfg)):
                raise
            raise ValueError(f'{error} (what changed: {changes})') from None


def append_record(path, record: StudyRecord) -> None:
    """Add a run to a file, as a whole line or not at all.

    Args:
        path (str | Path): the file; folders are made.
        record (StudyRecord): the run.

    Raises:
        ValueError: if the file has the run already, or runs that it does not
            compare with.
    """
    line = json.dumps(dict(format=FORMAT, **asdict(record)), allow_nan=False)
    with file_lock(lock_beside(path), wait=True), open(path, 'a+b') as file:
        compared = Comparison()
        for where, earlier in _numbered(path):
            compared.add(where, earlier)
            # Also from another machine: each run of a study is made once.
            if earlier.key == record.key:
                raise _twice(f'{path}: a new line', record, where)
        compared.add(f'{path}: a new line', record)
        file.seek(0)
        file.truncate(file.read().rfind(b'\n') + 1)
        file.write(line.encode() + b'\n')
        file.flush()
        os.fsync(file.fileno())


class Comparison:
    """Records that compare: each one is held to those before it."""

    def __init__(self) -> None:
        self.records: list[StudyRecord] = []
        self._runs: dict[tuple, str] = {}
        self._first: dict[tuple[str, ...], tuple[str, Any]] = {}

    def add(self, where: str, record: StudyRecord) -> None:
        """One record more.

        Args:
            where (str): its file and line.
            record (StudyRecord): the record.

        Raises:
            ValueError: if its run is there from the same machine, or it does
                not compare.
        """
        run = *record.key, record.made_on
        if run in self._runs:
            raise _twice(where, record, self._runs[run])
        self._runs[run] = where
        self.hold(where, record.method,
                  [getattr(record, key) for key in SAME])
        self.records.append(record)

    def hold(self, where: str, method: str, values: Sequence[str]) -> None:
        """Hold a run to what the first record has.

        Args:
            where (str): which run.
            method (str): its method.
            values (sequence[str]): its values of :data:`SAME`.

        Raises:
            ValueError: if something is not the same.
        """
        for key, value in zip(SAME, values):
            group = (key, method if key == 'config' else '')
            there, wanted = self._first.setdefault(group, (where, value))
            if value != wanted:
                raise ValueError(
                    f'{where}: expected {key} {wanted!r} as in {there}, got '
                    f'{value!r}; runs under different settings do not '
                    'compare: take back the change, or another file of '
                    'records')


def _twice(where: str, record: StudyRecord, before: str) -> ValueError:
    return ValueError(
        f'{where}: expected one record of each run, got {record.method}, seed '
        f'{record.seed} of {before} again; delete one of them')


def _numbered(path) -> Iterator[tuple[str, StudyRecord]]:
    """The records of a file, each with its place in it."""
    path = Path(path)
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().split(b'\n')[:-1], 1):
        try:
            fields = json.loads(line)
            if fields.pop('format') != FORMAT:
                raise ValueError('another format')
            yield f'{path}: line {number}', StudyRecord(**fields)
        except (ValueError, KeyError, TypeError, AttributeError,
                RecursionError) as error:
            raise ValueError(
                f'{path}: expected a record of a run in line {number}, got '
                f'{line[:60]!r} ({error!r:.100}); delete the line, and '
                'tools/study.sh makes it again') from None
