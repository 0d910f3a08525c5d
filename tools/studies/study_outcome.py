"""State and results of a run, read from its folder."""
import contextlib
import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from study_file import StudyRun
from study_records import StudyRecord, planned

from stepnet_mm.launch.entry import build_model
from stepnet_mm.recording.step_size_ablation import (
    ABLATIONS,
    STEP_MOMENTS,
    step_sizes_of,
)
from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils.checkpoint_pointer import read_pointer
from stepnet_mm.utils.files import DIVERGED, written_whole
from stepnet_mm.utils.log_folders import in_order, parse_line
from stepnet_mm.utils.provenance import today, versions

#: What a log says of commit, device and machine, and otherwise.
MADE_WITH = dict(
    commit=(re.compile(rb'INFO - stepnet_mm: \d\S*, (\S+)$', re.M), 'unknown'),
    device=(re.compile(rb'^ +GPU [\d,]+: (.+)$', re.M), 'cpu'),
    machine=(re.compile(rb'INFO - stepnet_mm: machine: (.+)$', re.M),
             'unknown'))
TRAINED = re.compile(rb'(?:Epoch|Iter)\(train\)')
#: Of a log's begin, in bytes: its head is shorter.
HEAD = 1 << 20


def record_of(run: StudyRun) -> StudyRecord:
    """The record of a run that is trained and measured, or diverged.

    Raises:
        ValueError: as :func:`evaluations`.
    """
    record = replace(
        planned(run), epochs=epochs_of(run.folder), versions=versions(),
        date=today(), **trained_with(run.folder), **times_of(run.folder))
    if has_diverged(run):
        return record
    values = evaluations(run)
    metrics, modules = (_read(run.ablation_file, key)
                        for key in ('metrics', 'steps'))
    best = best_checkpoint(run)
    test = tested(run) if best else {}
    return replace(
        record,
        diverged=False,
        last=values[-1],
        best=max(value for value in values if value is not None),
        stiffness={name: _stiffness(run.stiffness_file(name))
                   for name in run.study.measure['definitions']},
        steps=dict(
            **{name: rounded(metrics[name].get(run.study.metric))
               for name in ABLATIONS},
            **{name: _mean([module[name] for module in modules.values()])
               for name in STEP_MOMENTS}) if metrics else {},
        robustness={name: rounded(value) for name, value
                    in _read(run.robustness_file, 'top1').items()},
        test=dict(epoch=_number_of(best), **test) if test else {})


def evaluations(run: StudyRun) -> list[float | None]:
    """The study's metric of a trained run, in order; the last is a number.

    Raises:
        ValueError: if it is not; lists the keys that were evaluated.
    """
    epochs, metric = epochs_of(run.folder), run.study.metric
    values = [epoch[metric] for epoch in epochs if metric in epoch]
    if not values or values[-1] is None:
        known = sorted({key for epoch in epochs for key in epoch
                        if '/' in key})
        raise ValueError(
            f'{run.study.path}: metric: expected one of {known}, finite at '
            f'the end of {run.folder}, got {metric!r}: {values[-1:]}; correct '
            'it, or look at val_evaluator, train_cfg.val_interval and the log')
    return values


def is_trained(run: StudyRun) -> bool:
    """Whether a run has come to its end and was evaluated, or diverged."""
    if has_diverged(run):
        return True
    path = last_checkpoint(run.folder)
    for name, key in (('epoch', 'max_epochs'), ('iter', 'max_iters')):
        last = run.config().train_cfg.get(key)
        if path is not None and path.name == f'{name}_{last}.pth':
            return path.is_file() and any(
                epoch['epoch'] == last and any('/' in key for key in epoch)
                for epoch in epochs_of(run.folder))
    return False


def has_diverged(run: StudyRun) -> bool:
    """Whether a run stopped at a loss of NaN or inf."""
    return (run.folder / DIVERGED).is_file()


def last_checkpoint(folder: Path) -> Path | None:
    """The checkpoint that a run saved last, in its folder, if any."""
    with contextlib.suppress(ValueError):
        if path := read_pointer(folder):
            return folder / Path(path).name
    return None


def best_checkpoint(run: StudyRun) -> Path | None:
    """The checkpoint that validation chose (``save_best``), if any."""
    metric = re.escape(run.study.metric.replace('/', '_'))
    name = re.compile(rf'best_{metric}_(epoch|iter)_\d+\.pth')
    return max((path for path in run.folder.glob('best_*.pth')
                if name.fullmatch(path.name)), key=_number_of, default=None)


def _number_of(checkpoint: Path) -> int:
    """The epoch (iteration) that a checkpoint is named after."""
    return int(checkpoint.stem.rpartition('_')[2])


def has_steps(run: StudyRun) -> bool:
    """Whether there are step sizes that can be held fixed."""
    return bool(step_sizes_of(build_model(run.config(), start=False)))


def has_test_data(run: StudyRun) -> bool:
    """Whether they are others than those of the validation."""
    test, val = (dict((run.config().get(f'{split}_dataloader') or {}).get(
        'dataset') or {}, pipeline=None) for split in ('test', 'val'))
    return len(test) > 1 and test != val


def tested(run: StudyRun) -> dict[str, float | None]:
    """The metrics that mmengine writes at the end of a test, {} before."""
    for path in sorted(run.folder.glob('test/*/*.json'), reverse=True):
        with contextlib.suppress(ValueError):  # of a test that was killed
            return {key: rounded(value)
                    for key, value in json.loads(path.read_text()).items()
                    if '/' in key and isinstance(value, (int, float))}
    return {}


def times_of(folder: Path) -> dict[str, float]:
    """``cpu_seconds`` and ``wall_seconds`` of a run's pieces so far."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return json.loads((folder / 'times.json').read_text())
    return dict(cpu_seconds=0., wall_seconds=0.)


def add_times(folder: Path, **seconds: float) -> None:
    """Add those of a piece."""
    text = json.dumps({key: value + seconds[key]
                       for key, value in times_of(folder).items()})
    with written_whole(folder / 'times.json') as file:
        file.write(text.encode())


def _stiffness(path: Path) -> dict[str, Any]:
    """What a record keeps of a measurement."""
    record = read_stiffness_record(path)
    return dict(
        **{k: rounded(v) for k, v in record.tns_summary().items()},
        nsi=rounded(record.finite_nsi.mean().item()),
        samples=len(record.nsi),
        lost=record.lost,
        blocks=[dict(stage=row['stage'], nsi=rounded(row['mean']),
                     step=rounded(row['step']))
                for row in record.summary_by_block()])


def _read(path: Path, key: str) -> dict[str, Any]:
    """A part of a tool's JSON, {} where it was not run."""
    return json.loads(path.read_text())[key] if path.exists() else {}


def _mean(values: list[float | None]) -> float | None:
    """None where one of them is."""
    return None if None in values else rounded(mean(values))


def rounded(value: float | None) -> float | None:
    """Six digits of a number, for records; None if it is not finite."""
    return (float(f'{value:.6g}')
            if value is not None and math.isfinite(value) else None)


def epochs_of(folder: Path) -> list[dict]:
    """What a run logged, by epoch.

    Args:
        folder (Path): its work dir.

    Returns:
        list[dict]: of each epoch ``epoch``, ``loss``, the mean over its
        iterations if the config logs it, and what was evaluated after it.
        Iterations that ran again after a kill count once. Of a training
        that counts iterations, each one that was evaluated, by its number;
        its ``loss`` is what was logged there, a mean over the last ones.
    """
    found: defaultdict[int, dict] = defaultdict(dict)
    numbers = set()
    for line in (line for _, lines in _starts(folder) for line in lines):
        place = line.get('epoch', line.get('iter'))
        if place is not None:  # of training
            for key in ('loss', 'loss_epoch'):
                if key in line:
                    found[place]['loss'] = rounded(line[key])
            if 'epoch' in line:
                numbers.add(place)
        elif {'data_time', 'step'} <= {*line}:  # of a validation, no TNSHook
            numbers.add(line['step'])
            found[line['step']].update(
                {k: rounded(v) for k, v in line.items() if '/' in k})
    return [dict(epoch=number, **found[number]) for number in sorted(numbers)]


def trained_with(folder: Path) -> dict[str, str]:
    """``commit``, ``device`` and ``machine`` of a run, several joined by +."""
    heads = []
    for start, _ in _starts(folder):
        with contextlib.suppress(FileNotFoundError):
            with open(start / f'{start.name}.log', 'rb') as file:
                heads.append(file.read(HEAD))
    heads = [head for head in heads if TRAINED.search(head)] or heads
    return {
        name: '+'.join(dict.fromkeys(
            found[1].decode() if (found := pattern.search(head)) else other
            for head in heads)) or other
        for name, (pattern, other) in MADE_WITH.items()}


def _starts(folder: Path) -> list[tuple[Path, list[dict]]]:
    """The folders of its starts, the oldest first, and what each logged."""
    found = {path: _lines(path / 'vis_data/scalars.json')
             for path in folder.glob('*_*') if path.is_dir()}
    return [(path, found[path]) for path in in_order({
        path: [line['iter'] for line in lines if 'iter' in line]
        for path, lines in found.items()})]


def _lines(path: Path) -> list[dict]:
    """The lines of a log with numbers alone."""
    content = path.read_bytes() if path.is_file() else b''
    lines = (parse_line(text) or {} for text in content.splitlines())
    return [line for line in lines if all(map(_is_number, line.values()))]


def _is_number(value) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and abs(value) < 2**63)
