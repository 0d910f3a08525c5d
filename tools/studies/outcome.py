"""State and results of a run, read from its folder."""
import json
import math
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from records import StudyRecord, planned
from study_file import StudyRun

from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils import files
from stepnet_mm.utils.provenance import today, versions
from stepnet_mm.utils.training_logs import log_folders, logged

#: Of a run that was not begun.
TIMES = dict(cpu_seconds=0., wall_seconds=0.)
#: Line of a log with commit, device or machine, and the value without one.
MADE_WITH = dict(
    commit=(r'INFO - stepnet_mm: \d\S*, (\S+)$', 'unknown'),
    device=(r'^ +GPU [\d,]+: (.+)$', 'cpu'),
    machine=(r'INFO - stepnet_mm: machine: (.+)$', 'unknown'))


def record_of(run: StudyRun) -> StudyRecord:
    """The record of a run that is trained and measured, or diverged."""
    record = replace(
        planned(run), epochs=epochs_of(run.folder), versions=versions(),
        date=today(), **trained_with(run.folder), **times_of(run))
    if has_diverged(run):
        return record
    values = evaluations(run)
    steps = {}
    if ablation := _read(run.ablation_file):
        for name, metrics in ablation['metrics'].items():
            steps[name] = metrics.get(run.study.metric)
        modules = [*ablation['steps'].values()]
        for name in (key for key in modules[0] if key != 'by_channel'):
            steps[name] = np.mean(np.array([
                module[name] for module in modules], float))
    return replace(
        record,
        diverged=False,
        last=values[-1],
        best=max(value for value in values if value is not None),
        stiffness={name: _stiffness(run.stiffness_file(name))
                   for name in run.study.measure['definitions']},
        steps=_rounded(steps),
        test=test_of(run))


def evaluations(run: StudyRun) -> list[float | None]:
    """The study's metric of a trained run, in order; the last is a number."""
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
    length = run.config().train_cfg
    unit = 'epoch' if length.get('max_epochs') else 'iter'
    last = length.get(f'max_{unit}s')
    return path is not None and path.is_file() and (
        path.name == f'{unit}_{last}.pth') and any(
            epoch['epoch'] == last and any('/' in key for key in epoch)
            for epoch in epochs_of(run.folder))


def progress(run: StudyRun) -> str:
    """How far a run is, by what its tools printed last; or their error."""
    if not run.config_file.is_file():
        return 'not begun'
    text = run.log.read_text(errors='replace') if run.log.is_file() else ''
    found = [re.findall(pattern, text, re.M) for pattern in (
        r'\(train\) +(\[.+\]) +lr', r' (eta: .+?  time: [\d.]+)',
        rf' ({run.study.metric}: [\d.]+)', r'^(.*(?i:error).*)\n?\Z')]
    return ', '.join(['begun', *(values[-1] for values in found if values)])


def has_diverged(run: StudyRun) -> bool:
    """Whether a run stopped at a loss of NaN or inf."""
    return (run.folder / files.DIVERGED).is_file()


def last_checkpoint(folder: Path) -> Path | None:
    """The checkpoint that a run saved last, in its folder, if any."""
    with suppress(ValueError):
        if path := files.read_last_checkpoint(folder):
            return folder / Path(path).name
    return None


def best_checkpoint(run: StudyRun) -> Path | None:
    """The checkpoint that validation chose (``save_best``), if any."""
    name = f'best_{run.study.metric.replace("/", "_")}'
    return max(run.folder.glob(f'{name}_*_*.pth'), key=_number_of,
               default=None)


def _number_of(checkpoint: Path) -> int:
    """The epoch (iteration) that a checkpoint is named after."""
    return int(checkpoint.stem.rpartition('_')[2])


def has_test_data(run: StudyRun) -> bool:
    """Whether they are others than those of the validation."""
    test, val = (dict((run.config().get(f'{split}_dataloader') or {}).get(
        'dataset') or {}, pipeline=None) for split in ('test', 'val'))
    return len(test) > 1 and test != val


def test_of(run: StudyRun) -> dict[str, float | None]:
    """Epoch and test metrics of the best checkpoint, {} before its test."""
    best = best_checkpoint(run)
    found = sorted(run.folder.glob('test/*/*.json'))  # mmengine writes it
    return dict(epoch=_number_of(best), **_rounded({
        key: value for key, value in _read(found[-1]).items()
        if '/' in key and isinstance(value, (int, float))
    })) if best and found else {}


def add_times(run: StudyRun, **seconds: float) -> None:
    """Add the ``cpu_seconds`` and ``wall_seconds`` of a phase of a run."""
    before = times_of(run)
    with files.atomic_write(run.times_file) as file:
        file.write(json.dumps({key: before[key] + value for key, value
                               in seconds.items()}).encode())


def times_of(run: StudyRun) -> dict[str, float]:
    """Those of :func:`add_times`, 0 where there are none."""
    return {**TIMES, **_read(run.times_file)}


def _stiffness(path: Path) -> dict[str, Any]:
    """The summary of a measurement, for a record."""
    record = read_stiffness_record(path)
    return dict(
        **_rounded(record.tns_summary()),
        **_rounded(dict(nsi=record.finite_nsi.mean().item())),
        samples=len(record.nsi),
        lost=record.nonfinite,
        blocks=[dict(stage=row['stage'],
                     **_rounded(dict(nsi=row['mean'], step=row['step'])))
                for row in record.summary_by_block()])


def _read(path: Path) -> dict[str, Any]:
    """The JSON of a tool, {} where it was not run."""
    content = files.parse_line(path.read_bytes()) if path.exists() else {}
    if content is None:
        raise ValueError(f'{path}: expected a JSON object, got another text; '
                         'delete the file, and it is made again')
    return content


def _rounded(numbers: dict[str, float | None]) -> dict[str, float | None]:
    """Six digits of each, for records; None if it is not finite."""
    return {key: float(f'{value:.6g}')
            if value is not None and math.isfinite(value) else None
            for key, value in numbers.items()}


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
    for line in chain.from_iterable(logged(folder, 'scalars')):
        if not all(isinstance(value, (int, float)) for value in line.values()):
            continue
        place = line.get('epoch', line.get('iter'))
        if place is not None:  # of training
            if 'loss' in line:
                found[place]['loss'] = line.get('loss_epoch', line['loss'])
            if 'epoch' in line:
                numbers.add(place)
        elif {'data_time', 'step'} <= {*line}:  # of a validation, no TNSHook
            numbers.add(line['step'])
            found[line['step']].update(
                {key: line[key] for key in line if '/' in key})
    return [dict(epoch=number, **_rounded(found[number]))
            for number in sorted(numbers)]


def trained_with(folder: Path) -> dict[str, str]:
    """``commit``, ``device`` and ``machine`` of a run, several joined by +."""
    texts = [path.read_text(errors='replace')
             for start in log_folders(folder) for path in start.glob('*.log')]
    # A start that logged no iteration trained nothing that counts.
    texts = [text for text in texts if '(train)' in text] or texts
    return {
        name: '+'.join(dict.fromkeys(
            found[1] if (found := re.search(pattern, text, re.M)) else other
            for text in texts)) or other
        for name, (pattern, other) in MADE_WITH.items()}
