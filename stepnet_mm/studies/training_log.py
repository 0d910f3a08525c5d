"""Losses, metrics and times of a run, from what mmengine logged."""
import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from mmengine.config import Config

from ..analysis.runs import parse_line
from ..utils.files import DIVERGED
from ..utils.pointer import read_pointer
from ..utils.starts import in_order
from .study import digest

#: The mean over an epoch where a config's log_processor gives it, otherwise
#: the mean over the last iterations.
LOSSES = ('loss_epoch', 'loss')
#: How far a training is, in its log: [epoch][iteration/of the epoch], or
#: [iteration/of all].
PLACE = re.compile(rb'(?:Epoch\(train\) +\[(\d+)\]|Iter\(train\) +)'
                   rb'\[ *(\d+)/(\d+)\]')
#: What tools/train.py logs, and mmengine where there is a GPU.
COMMIT = re.compile(rb'INFO - stepnet_mm: \d\S*, (\S+)$', re.M)
MACHINE = re.compile(rb'INFO - stepnet_mm: machine: (.+)$', re.M)
GPU = re.compile(rb'^ +GPU [\d,]+: (.+)$', re.M)
#: mmengine names each start's folder and log by its time, and begins a
#: record of the log with the time: both of the machine's own zone.
START = '%Y%m%d_%H%M%S'
TIME = '%Y/%m/%d %H:%M:%S'
RECORD = re.compile(rb'^(\d{4}(?:/\d\d){2} \d\d(?::\d\d){2}) - ', re.M)
#: What a start's folder has of its losses and metrics.
SCALARS = 'vis_data/scalars.json'
#: In bytes, of a log's begin or end: more than is logged between two places.
PART = 1 << 20


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
            for key in LOSSES[::-1]:
                if key in line:
                    found[place]['loss'] = rounded(line[key])
            if 'epoch' in line:
                numbers.add(place)
        elif {'data_time', 'step'} <= {*line}:  # of a validation, no TNSHook
            numbers.add(line['step'])
            found[line['step']].update(
                {k: rounded(v) for k, v in line.items() if '/' in k})
    return [dict(epoch=number, **found[number]) for number in sorted(numbers)]


def rounded(value: float) -> float | None:
    """Six digits of a number, for records; None if it is not finite."""
    return float(f'{value:.6g}') if math.isfinite(value) else None


def fraction_of(folder: Path, epochs: int) -> float:
    """How much of its training a run has behind it, 0 to 1.

    Args:
        folder (Path): its work dir.
        epochs (int): how many it is to have; 0 if it counts iterations.
    """
    for path in _in_order(logs_of(folder))[::-1]:
        places = PLACE.findall(_tail(path))
        if places:
            epoch, *rest = places[-1]
            done, total = map(int, rest)
            return ((int(epoch) - 1 + done / total) / max(epochs, 1)
                    if epoch else done / total)
    return 0.


def seconds_of(folder: Path) -> float:
    """How long a run was trained so far, killed pieces included, in s."""
    return sum(map(_seconds, logs_of(folder)))


def _seconds(log: Path) -> float:
    """From the name of a log to the last time in it, of one zone both."""
    times = RECORD.findall(_tail(log))
    end = (datetime.strptime(times[-1].decode(), TIME) if times else
           datetime.fromtimestamp(log.stat().st_mtime))
    return max((end - datetime.strptime(log.stem, START)).total_seconds(), 0)


def _tail(path: Path) -> bytes:
    with open(path, 'rb') as file:
        file.seek(max(path.stat().st_size - PART, 0))
        return file.read()


def last_checkpoint(folder: Path) -> Path | None:
    """The checkpoint that the run saved last, in this folder, if any."""
    with contextlib.suppress(ValueError):
        if path := read_pointer(folder):
            return folder / Path(path).name
    return None


def best_checkpoint(folder: Path, metric: str) -> Path | None:
    """The checkpoint that a metric chose (``save_best``), if any."""
    name = re.compile(
        rf'best_{re.escape(metric.replace("/", "_"))}_(epoch|iter)_\d+\.pth')
    found = [path for path in folder.glob('best_*.pth')
             if name.fullmatch(path.name)]
    return max(found, key=number_of, default=None)


def number_of(checkpoint: Path) -> int:
    """The epoch (iteration) that a checkpoint is named after."""
    return int(checkpoint.stem.rpartition('_')[2])


def is_finished(folder: Path, cfg: Config) -> bool:
    """Whether a run has its last checkpoint, and was evaluated after it."""
    path = last_checkpoint(folder)
    for name, key in (('epoch', 'max_epochs'), ('iter', 'max_iters')):
        last = cfg.train_cfg.get(key)
        if path is not None and path.name == f'{name}_{last}.pth':
            return path.is_file() and _is_evaluated(folder, last)
    return False


def _is_evaluated(folder: Path, number: int) -> bool:
    """Whether a run has results of that epoch (iteration)."""
    return any(epoch['epoch'] == number and any('/' in key for key in epoch)
               for epoch in epochs_of(folder))


def has_diverged(folder: Path) -> bool:
    """Whether a run stopped at a loss of NaN or inf."""
    return (folder / DIVERGED).is_file()


def trained_with(folder: Path) -> dict[str, Any]:
    """``commit``, ``device`` and ``machine`` of a run, several joined by +."""
    heads = [_head(path) for path in _in_order(logs_of(folder))]
    heads = [head for head in heads if PLACE.search(head)] or heads
    return dict(commit=_found(COMMIT, heads, 'unknown'),
                device=_found(GPU, heads, 'cpu'),
                machine=_found(MACHINE, heads, 'unknown'))


def _head(path: Path) -> bytes:
    with open(path, 'rb') as file:
        return file.read(PART)


def _found(pattern: re.Pattern, heads: list[bytes], otherwise: str) -> str:
    matches = [pattern.search(head) for head in heads]
    names = [match[1].decode() if match else otherwise for match in matches]
    return '+'.join(dict.fromkeys(names)) or otherwise


def dataset_of(cfg: Config) -> str:
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


def logs_of(folder: Path) -> list[Path]:
    """One file for each start."""
    return [path for path in folder.glob('*_*/*.log')
            if path.stem == path.parent.name]


def _in_order(logs: list[Path]) -> list[Path]:
    return in_order({log: _iterations(_lines_in(log.parent / SCALARS))
                     for log in logs})


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
