"""What came out of a run, read from its folder."""
import contextlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from study_file import StudyRun, begun_config
from study_records import StudyRecord, dataset_of

from stepnet_mm.config.digests import config_digest
from stepnet_mm.launch.entry import build_model
from stepnet_mm.recording.step_size_ablation import (
    ABLATIONS,
    STEP_MOMENTS,
    step_sizes_of,
)
from stepnet_mm.stiffness import read_stiffness_record
from stepnet_mm.utils.files import DIVERGED, written_whole
from stepnet_mm.utils.last_checkpoint import read_pointer
from stepnet_mm.utils.log_folders import in_order, parse_line
from stepnet_mm.utils.provenance import today, versions

#: What tools/train.py logs, and mmengine where there is a GPU.
COMMIT = re.compile(rb'INFO - stepnet_mm: \d\S*, (\S+)$', re.M)
MACHINE = re.compile(rb'INFO - stepnet_mm: machine: (.+)$', re.M)
GPU = re.compile(rb'^ +GPU [\d,]+: (.+)$', re.M)
TRAINED = re.compile(rb'(?:Epoch|Iter)\(train\)')
#: Of a log's begin, in bytes: its head is shorter.
HEAD = 1 << 20
#: What a start's folder has of its losses and metrics.
SCALARS = 'vis_data/scalars.json'


def record_of(run: StudyRun) -> StudyRecord:
    """The record of a run that is trained and measured, or diverged.

    Args:
        run (StudyRun): the run, with a result, see :func:`check_result`.
    """
    cfg = begun_config(run.config_file)
    epochs = epochs_of(run.folder)
    return StudyRecord(
        study=run.study.name,
        method=run.method.name,
        seed=run.seed,
        settings=run.study.settings,
        config=config_digest(cfg),
        dataset=dataset_of(cfg),
        metric=run.study.metric,
        epochs=epochs,
        **_results(run, epochs),
        versions=versions(),
        date=today(),
        **trained_with(run.folder),
        **times_of(run.folder))


def check_result(run: StudyRun) -> None:
    """Check that a run that is trained has a number at its end.

    Raises:
        ValueError: if it has none; with the keys that were evaluated.
    """
    epochs = epochs_of(run.folder)
    values = _evaluated(run, epochs)
    if values and values[-1] is not None:
        return
    known = sorted({key for epoch in epochs for key in epoch if '/' in key})
    if known and not values:
        raise ValueError(f'{run.study.path}: metric: expected one of {known}, '
                         f'got {run.study.metric!r}; correct it')
    got = f'{values[-1]} at the end' if values else 'none'
    raise ValueError(
        f'{run.folder}: expected evaluations of {run.study.metric!r}, got '
        f'{got}; look at val_evaluator, train_cfg.val_interval and the log')


def is_trained(run: StudyRun) -> bool:
    """Whether a run has come to its end and was evaluated, or diverged."""
    if has_diverged(run):
        return True
    loop = begun_config(run.config_file).train_cfg
    path = last_checkpoint(run.folder)
    for name, key in (('epoch', 'max_epochs'), ('iter', 'max_iters')):
        last = loop.get(key)
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
    found = [path for path in run.folder.glob('best_*.pth')
             if name.fullmatch(path.name)]
    return max(found, key=_number_of, default=None)


def _number_of(checkpoint: Path) -> int:
    """The epoch (iteration) that a checkpoint is named after."""
    return int(checkpoint.stem.rpartition('_')[2])


def ablation_is_left(run: StudyRun) -> bool:
    """Whether a trained run has step sizes still to be held fixed."""
    if not run.study.measure['ablate_steps'] or run.ablation_file.exists():
        return False
    cfg = begun_config(run.config_file)
    return bool(step_sizes_of(build_model(cfg, start=False)))


def best_to_test(run: StudyRun) -> Path | None:
    """The best checkpoint, if its test is still to be made.

    There is one where the config has test data of its own, and ``save_best``.
    """
    cfg = begun_config(run.config_file)
    test, val = (dict((cfg.get(f'{split}_dataloader') or {}).get(
        'dataset') or {}, pipeline=None) for split in ('test', 'val'))
    if len(test) == 1 or test == val or _tested(run):
        return None
    return best_checkpoint(run)


def _tested(run: StudyRun) -> dict[str, float | None]:
    """The metrics that mmengine writes at the end of a test, {} before."""
    for path in sorted(run.test_folder.glob('*/*.json'), reverse=True):
        with contextlib.suppress(ValueError):  # of a test that was killed
            return {key: rounded(value)
                    for key, value in json.loads(path.read_text()).items()
                    if '/' in key and isinstance(value, (int, float))}
    return {}


def times_of(folder: Path) -> dict[str, Any]:
    """``cpu_seconds`` and ``wall_seconds`` of a run's pieces so far."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return json.loads((folder / 'times.json').read_text())
    return dict(cpu_seconds=0., wall_seconds=0.)


def add_times(folder: Path, cpu: float, wall: float) -> None:
    """Add a piece of a run, in s."""
    times = times_of(folder)
    with written_whole(folder / 'times.json') as file:
        file.write(json.dumps(dict(
            cpu_seconds=times['cpu_seconds'] + cpu,
            wall_seconds=times['wall_seconds'] + wall)).encode())


def _evaluated(run: StudyRun, epochs: list[dict]) -> list[float | None]:
    """The study's metric in the order of its evaluations."""
    metric = run.study.metric
    return [epoch[metric] for epoch in epochs if metric in epoch]


def _results(run: StudyRun, epochs: list[dict]) -> dict[str, Any]:
    if has_diverged(run):
        return dict(diverged=True)
    values = _evaluated(run, epochs)
    best = best_checkpoint(run)
    tested = _tested(run) if best else {}
    return dict(
        last=values[-1],
        best=max(v for v in values if v is not None),
        stiffness={
            name: _stiffness(run.stiffness_file(name))
            for name in run.study.measure['definitions']
        },
        steps=_steps(run),
        robustness={
            name: rounded(value)
            for name, value in _read(run.robustness_file, 'top1').items()
        },
        test=dict(epoch=_number_of(best), **tested) if tested else {})


def _stiffness(path: Path) -> dict[str, Any]:
    """What a record keeps of a measurement."""
    record = read_stiffness_record(path)
    rows = record.summary_by_block()
    return dict(
        **{k: rounded(v) for k, v in record.tns_summary().items()},
        nsi=rounded(record.finite_nsi.mean().item()),
        samples=len(record.nsi),
        lost=record.lost,
        blocks=[
            dict(stage=row['stage'], nsi=rounded(row['mean']),
                 step=rounded(row['step'])) for row in rows
        ])


def _steps(run: StudyRun) -> dict[str, Any]:
    """What a record keeps of the ablation of step sizes, {} without one."""
    metrics = _read(run.ablation_file, 'metrics')
    modules = _read(run.ablation_file, 'steps').values()
    return dict(
        **{name: _rounded_mean([metrics[name].get(run.study.metric)])
           for name in ABLATIONS},
        **{name: _rounded_mean([module[name] for module in modules])
           for name in STEP_MOMENTS}) if metrics else {}


def _read(path: Path, key: str) -> dict[str, Any]:
    """A part of a tool's JSON, {} where it was not run."""
    return json.loads(path.read_text())[key] if path.exists() else {}


def _rounded_mean(values: list[float | None]) -> float | None:
    """None where one of them is."""
    numbers = [value for value in values if value is not None]
    return rounded(mean(numbers)) if len(numbers) == len(values) else None


def rounded(value: float) -> float | None:
    """Six digits of a number, for records; None if it is not finite."""
    return float(f'{value:.6g}') if math.isfinite(value) else None


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
    for line in _lines(folder):
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


def trained_with(folder: Path) -> dict[str, Any]:
    """``commit``, ``device`` and ``machine`` of a run, several joined by +."""
    logs = in_order({
        log: _iterations(_lines_in(log.parent / SCALARS))
        for log in folder.glob('*_*/*.log') if log.stem == log.parent.name})
    heads = [_head(path) for path in logs]
    heads = [head for head in heads if TRAINED.search(head)] or heads
    return dict(commit=_found(COMMIT, heads, 'unknown'),
                device=_found(GPU, heads, 'cpu'),
                machine=_found(MACHINE, heads, 'unknown'))


def _head(path: Path) -> bytes:
    with open(path, 'rb') as file:
        return file.read(HEAD)


def _found(pattern: re.Pattern, heads: list[bytes], otherwise: str) -> str:
    matches = [pattern.search(head) for head in heads]
    names = [match[1].decode() if match else otherwise for match in matches]
    return '+'.join(dict.fromkeys(names)) or otherwise


def _lines(folder: Path) -> Iterator[dict]:
    starts = {path: [*_lines_in(path)] for path in folder.glob(f'*/{SCALARS}')}
    for path in in_order({p: _iterations(starts[p]) for p in starts}):
        yield from starts[path]


def _lines_in(path: Path) -> Iterator[dict]:
    for text in path.read_bytes().split(b'\n')[:-1] if path.is_file() else ():
        line = parse_line(text)
        if line is not None and all(map(_is_number, line.values())):
            yield line


def _iterations(lines: Iterable[dict]) -> list[float]:
    return [line['iter'] for line in lines if 'iter' in line]


def _is_number(value) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and abs(value) < 2**63)
