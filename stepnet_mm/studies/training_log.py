"""Losses and metrics by epoch, from what mmengine logged."""
import json
import math
from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

from .study import digest

#: The mean over an epoch where a config's log_processor gives it, otherwise
#: the mean over the last iterations.
LOSSES = ('loss_epoch', 'loss')


def epochs_of(folder: Path) -> list[dict]:
    """What a run logged, by epoch.

    Args:
        folder (Path): its work dir.

    Returns:
        list[dict]: of each epoch ``epoch``, ``loss``, the mean over its
        iterations if the config logs it, and what was evaluated after it.
        Iterations that ran again after a kill count once.
    """
    epochs: dict[int, dict] = {}
    for line in _lines(folder):
        if 'epoch' in line:  # of training
            epoch = epochs.setdefault(line['epoch'],
                                      dict(epoch=line['epoch']))
            for key in LOSSES[::-1]:
                if key in line:
                    epoch['loss'] = rounded(line[key])
        elif 'step' in line:  # of a validation
            epoch = epochs.setdefault(line['step'], dict(epoch=line['step']))
            epoch.update(
                {k: rounded(v) for k, v in line.items() if '/' in k})
    return [epochs[number] for number in sorted(epochs)]


def rounded(value: float) -> float | None:
    """Six digits of a number, for records; None if it is not finite."""
    return float(f'{value:.6g}') if math.isfinite(value) else None


def iteration_of(folder: Path) -> int:
    """The last iteration that a run logged; 0 if none."""
    return max((line['iter'] for line in _lines(folder, newest=True)
                if 'iter' in line), default=0)


def last_checkpoint(folder: Path) -> Path | None:
    """The checkpoint that the run saved last, in this folder."""
    note = folder / 'last_checkpoint'
    if not note.is_file():
        return None
    return folder / Path(note.read_text().strip()).name


def is_finished(folder: Path, cfg: Config) -> bool:
    """Whether a run has its last checkpoint."""
    loop = cfg.train_cfg
    names = (f'epoch_{loop.get("max_epochs")}.pth',
             f'iter_{loop.get("max_iters")}.pth')
    path = last_checkpoint(folder)
    return path is not None and path.name in names and path.is_file()


def has_diverged(folder: Path) -> bool:
    """Whether a run stopped at a loss of NaN or inf."""
    return any(folder.glob('nonfinite_iter_*.pth'))


def dataset_of(cfg: Config) -> str:
    """What a run is trained and evaluated on, in a line."""
    parts = []
    for name in ('train_dataloader', 'val_dataloader'):
        dataset = dict(cfg[name].dataset)
        dataset.pop('data_root', None)
        parts.append(digest(dataset))
    return f'{cfg.train_dataloader.dataset.type} {"/".join(parts)}'


def _lines(folder: Path, newest: bool = False) -> Iterator[dict]:
    paths = sorted(folder.glob('*/vis_data/scalars.json'))
    for path in paths[-1:] if newest else paths:
        for text in path.read_bytes().split(b'\n')[:-1]:
            try:
                line = json.loads(text)
            except ValueError:  # a kill cut it, and the next start went on
                continue
            if isinstance(line, dict):
                yield line
