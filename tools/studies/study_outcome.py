"""State and results of a run, read from its folder."""
import contextlib
import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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

#: CPU and wall time of the completed phases.
TIMES = 'times.json'
#: Line of a log with commit, device or machine, and the value without one.
MADE_WITH = dict(
    commit=(re.compile(r'INFO - stepnet_mm: \d\S*, (\S+)$', re.M), 'unknown'),
    device=(re.compile(r'^ +GPU [\d,]+: (.+)$', re.M), 'cpu'),
    machine=(re.compile(r'INFO - stepnet_mm: machine: (.+)$', re.M),
             'unknown'))


def record_of(run: StudyRun) -> StudyRecord:
    """The record of a run that is trained and measured, or diverged.

    Raises:
        ValueError: as :func:`evaluations`.
    """
    record = replace(
        planned(run), epochs=epochs_of(run.folder), versions=versions(),
        date=today(), **trained_with(run.folder), **_read(run.folder / TIMES))
    if has_diverged(run):
        return record
    values = evaluations(run)
    ablation, robustness = map(
        _read, (run.ablation_file, run.robustness_file))
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
            **{name: rounded(ablation['metrics'][name].get(run.study.metric))
               for name in ABLATIONS},
            **{name: rounded(np.mean(np.array(
                [module[name] for module in ablation['steps'].values()],
                float))) for name in STEP_MOMENTS}) if ablation else {},
        robustness={name: rounded(value) for name, value
                    in robustness.get('top1', {}).items()},
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
    if path is None or not path.is_file():
        return False
    length = run.config().train_cfg
    unit = 'epoch' if length.get('max_epochs') else 'iter'
    last = length.get(f'max_{unit}s')
    return path.name == f'{unit}_{last}.pth' and any(
        epoch['epoch'] == last and any('/' in key for key in epoch)
        for epoch in epochs_of(run.folder))


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
    name = f'best_{run.study.metric.replace("/", "_")}'
    found = [path for unit in ('epoch', 'iter')
             for path in run.folder.glob(f'{name}_{unit}_*.pth')]
    return max(found, key=_number_of, default=None)


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


def add_times(folder: Path, **seconds: float) -> None:
    """Add the ``cpu_seconds`` and ``wall_seconds`` of a phase of a run."""
    before: dict[str, Any] = {}
    with contextlib.suppress(ValueError):  # damaged
        before = _read(folder / TIMES)
    text = json.dumps({key: before.get(key, 0.) + value
                       for key, value in seconds.items()})
    with written_whole(folder / TIMES) as file:
        file.write(text.encode())


def _stiffness(path: Path) -> dict[str, Any]:
    """The summary of a measurement, for a record."""
    record = read_stiffness_record(path)
    return dict(
        **{k: rounded(v) for k, v in record.tns_summary().items()},
        nsi=rounded(record.finite_nsi.mean().item()),
        samples=len(record.nsi),
        lost=record.lost,
        blocks=[dict(stage=row['stage'], nsi=rounded(row['mean']),
                     step=rounded(row['step']))
                for row in record.summary_by_block()])


def _read(path: Path) -> dict[str, Any]:
    """The JSON of a tool, {} where it was not run."""
    return json.loads(path.read_text()) if path.exists() else {}


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
    for line in (line for lines in _starts(folder).values()
                 for line in lines):
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
    starts = _starts(folder)
    # A start that logged no iteration trained nothing that counts.
    trained = [start for start, lines in starts.items()
               if any('iter' in line for line in lines)]
    logs = [start / f'{start.name}.log' for start in trained or starts]
    texts = [log.read_text(errors='replace') for log in logs if log.exists()]
    return {
        name: '+'.join(dict.fromkeys(
            found[1] if (found := pattern.search(text)) else other
            for text in texts)) or other
        for name, (pattern, other) in MADE_WITH.items()}


def _starts(folder: Path) -> dict[Path, list[dict]]:
    """The folders of its starts, the oldest first, and what each logged."""
    found = {path: _lines(path / 'vis_data/scalars.json')
             for path in folder.glob('*_*') if path.is_dir()}
    return {path: found[path] for path in in_order({
        path: [line['iter'] for line in lines if 'iter' in line]
        for path, lines in found.items()})}


def _lines(path: Path) -> list[dict]:
    """The lines of a log with numbers alone."""
    content = path.read_bytes() if path.is_file() else b''
    lines = (parse_line(text) or {} for text in content.splitlines())
    return [line for line in lines if line and all(
        isinstance(value, float)
        or isinstance(value, int) and abs(value) < 2**63
        for value in line.values())]
