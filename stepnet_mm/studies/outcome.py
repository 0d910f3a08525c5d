"""What came out of a run, read from its folder."""
import json
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

from mmengine.config import Config

from ..launch.entry import build_model
from ..recording.step_sizes import ABLATIONS, STEP_MOMENTS, step_sizes_of
from ..stiffness import read_stiffness_record
from ..utils.circumstances import today, versions
from ..utils.files import written_whole
from .records import StudyRecord
from .run import StudyRun, begun_config, config_digest
from .training_log import (
    best_checkpoint,
    dataset_of,
    epochs_of,
    has_diverged,
    is_finished,
    number_of,
    rounded,
    seconds_of,
    trained_with,
)


def record_of(run: StudyRun) -> StudyRecord:
    """The record of a run that is trained and measured, or diverged.

    Args:
        run (StudyRun): the run, with a result, see :func:`.missing_result`.
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
        **_times(run.folder))


def results_of(run: StudyRun, epochs: list[dict]) -> list[float | None]:
    """The study's metric in the order of its evaluations; None if not finite.

    Args:
        run (StudyRun): the run.
        epochs (list[dict]): of :func:`.epochs_of`.
    """
    metric = run.study.metric
    return [epoch[metric] for epoch in epochs if metric in epoch]


def missing_result(run: StudyRun, epochs: list[dict]) -> str:
    """What to tell where a run that is trained has no number at its end.

    Args:
        run (StudyRun): the run, trained to its end.
        epochs (list[dict]): of :func:`.epochs_of`.
    """
    values = results_of(run, epochs)
    if values and values[-1] is not None:
        return ''
    known = sorted({key for epoch in epochs for key in epoch if '/' in key})
    if known and not values:
        return (f'{run.study.path}: metric: expected one of {known}, got '
                f'{run.study.metric!r}; correct it')
    got = f'{values[-1]} at the end' if values else 'none'
    return (f'{run.folder}: expected evaluations of {run.study.metric!r}, '
            f'got {got}; look at val_evaluator, train_cfg.val_interval and '
            'the log')


def is_trained(run: StudyRun) -> bool:
    """Whether a run's training has come to its end, or diverged."""
    cfg = begun_config(run.config_file)
    return is_finished(run.folder, cfg) or has_diverged(run.folder)


def ablation_is_left(run: StudyRun) -> bool:
    """Whether a trained run has step sizes still to be held fixed."""
    if not run.study.measure['ablate_steps'] or run.ablation_file.exists():
        return False
    cfg = begun_config(run.config_file)
    return bool(step_sizes_of(build_model(cfg, start=False)))


def best_to_test(run: StudyRun) -> Path | None:
    """The checkpoint that validation chose, if its test is still to be made.

    There is one where the config has test data of its own, and ``save_best``.
    """
    cfg = begun_config(run.config_file)
    if not has_own_test(cfg) or _tested(run):
        return None
    return best_checkpoint(run.folder, run.study.metric)


def has_own_test(cfg: Config) -> bool:
    """Whether a config tests on other data than those of its validation."""
    test, val = (dict((cfg.get(f'{split}_dataloader') or {}).get(
        'dataset') or {}) for split in ('test', 'val'))
    for dataset in (test, val):
        dataset.pop('pipeline', None)
    return bool(test) and test != val


def _tested(run: StudyRun) -> dict[str, float | None]:
    """The metrics that mmengine writes at the end of a test, {} before."""
    for path in sorted(run.test_folder.glob('*/*.json'), reverse=True):
        with suppress(ValueError):  # the end of a test that was killed
            return {key: rounded(value)
                    for key, value in json.loads(path.read_text()).items()
                    if '/' in key and isinstance(value, (int, float))}
    return {}


def times_of(folder: Path) -> dict[str, Any]:
    """``cpu_seconds`` and ``wall_seconds`` of a run's pieces so far."""
    path = folder / 'times.json'
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return dict(cpu_seconds=0., wall_seconds=0.)


def add_times(folder: Path, cpu: float, wall: float) -> None:
    """Add a piece of a run, in s."""
    times = times_of(folder)
    with written_whole(folder / 'times.json') as file:
        file.write(json.dumps(dict(
            cpu_seconds=times['cpu_seconds'] + cpu,
            wall_seconds=times['wall_seconds'] + wall)).encode())


def _times(folder: Path) -> dict[str, Any]:
    """The logs know of pieces that were killed, or trained by Slurm."""
    times = times_of(folder)
    return dict(times, wall_seconds=max(times['wall_seconds'],
                                        seconds_of(folder)))


def _results(run: StudyRun, epochs: list[dict]) -> dict[str, Any]:
    if has_diverged(run.folder):
        return dict(diverged=True)
    values = results_of(run, epochs)
    return dict(
        last=values[-1],
        best=max(v for v in values if v is not None),
        stiffness={
            name: _stiffness(run.stiffness_file(name))
            for name in run.study.measure['definitions']
        },
        steps=_steps(run),
        robustness=_robustness(run),
        test=_test(run))


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
    if not run.ablation_file.exists():
        return {}
    found = json.loads(run.ablation_file.read_text())
    metrics, modules = found['metrics'], found['steps'].values()
    return dict(
        **{name: _rounded_mean([metrics[name].get(run.study.metric)])
           for name in ABLATIONS},
        **{name: _rounded_mean([module[name] for module in modules])
           for name in STEP_MOMENTS})


def _robustness(run: StudyRun) -> dict[str, float | None]:
    """Top-1 on disturbed images by their kind, {} where not measured."""
    if not run.robustness_file.exists():
        return {}
    top1 = json.loads(run.robustness_file.read_text())['top1']
    return {name: rounded(value) for name, value in top1.items()}


def _test(run: StudyRun) -> dict[str, Any]:
    """What a record keeps of the test of the best epoch, {} without one."""
    found = _tested(run)
    best = best_checkpoint(run.folder, run.study.metric)
    return dict(epoch=number_of(best), **found) if found and best else {}


def _rounded_mean(values: list[float | None]) -> float | None:
    """None where one of them is."""
    numbers = [value for value in values if value is not None]
    return rounded(mean(numbers)) if len(numbers) == len(values) else None
