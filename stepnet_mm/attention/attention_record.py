"""How far heads look, in records; which files of a work dir are a history."""
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..utils.files import atomic_write
from ..utils.precision import float32_or_wider
from ..utils.training_logs import log_folders

#: What the header of a file of ours says.
FORMAT = 'stepnet_mm attention 2'
#: Query pixels of a layer whose distances are taken, at most.
QUERIES = 1024


def mean_attention_distance(layer, x: Tensor, pixel=(1., 1.)) -> Tensor:
    r"""How far each head looks.

    :math:`\sum_k a_{q,k} \|k - q\|_2`, the distance between query and key
    weighted by the attention, in the mean over query pixels and images
    (Dosovitskiy et al. 2021, appendix D.7); of a larger map of at most 1024
    pixels, evenly spread. What it costs: docs/self_attention.md.

    Args:
        layer (RelativeSelfAttention2d): the layer.
        x (Tensor): its input, (N, C, H, W).
        pixel (tuple[float, float]): height and width of one of its pixels.
            Defaults to 1.

    Returns:
        Tensor: (heads, ), float64 on the CPU, in the unit of ``pixel``.
    """
    stride = _stride(layer, x)
    rows = [torch.einsum('hpkl,pkl->h', attention[0].to(distances.dtype),
                         distances) / len(distances)
            for image in (x.split(1) if layer.content else (x[:1], ))
            for attention, distances in zip(
                layer.attention_by_row(image, stride),
                _distances(layer, image, pixel, stride))]
    return torch.stack(rows).cpu().double().mean(0)


def uniform_attention_distance(layer, x: Tensor, pixel=(1., 1.)) -> float:
    """:func:`mean_attention_distance` of a head with uniform attention."""
    rows = [d.mean() for d in _distances(layer, x, pixel, _stride(layer, x))]
    return float(torch.stack(rows).mean())


def _stride(layer, x: Tensor) -> int:
    """The least k so that every k-th row and column are QUERIES at most."""
    sizes = [size + 2 * (padding - crop) for size, padding, crop in zip(
        x.shape[2:], layer.padding, layer.crop)]
    return next(k for k in itertools.count(1) if math.prod(
        -(-size // k) for size in sizes) <= QUERIES)


def _distances(layer, x: Tensor, pixel, stride: int):
    """From each row of query pixels to all keys: (queries, H, W)."""
    dtype = float32_or_wider(x.dtype)
    places = [torch.arange(size + 2 * padding, dtype=dtype, device=x.device)
              for size, padding in zip(x.shape[2:], layer.padding)]
    rows, columns = [place * edge for place, edge in zip(places, pixel)]
    own_rows, own_columns = [
        t[crop:len(t) - crop][::stride]
        for t, crop in zip((rows, columns), layer.crop)]
    across = columns - own_columns[:, None]
    for own in own_rows:
        yield torch.hypot((rows - own)[:, None], across[:, None])


@dataclass
class LayerAttention:
    """Attention of the heads of one layer.

    Attributes:
        name (str): of the layer.
        maps (ndarray): (heads, H, W), each head's attention of the query
            pixel, padding included; its sum is 1.
        query (tuple[int, int]): row and column of the query in ``maps``.
        distance (list[float]): of each head, :func:`mean_attention_distance`
            in px of the image.
        uniform (float): that distance for uniform attention.
    """
    name: str
    maps: np.ndarray
    query: tuple
    distance: list
    uniform: float

    @property
    def mean_distance(self) -> float:
        """The mean of ``distance`` over the heads."""
        return float(np.mean(self.distance))


@dataclass
class AttentionRecord:
    """Attention of a network's layers, in the order in which they run.

    Attributes:
        layers (list[LayerAttention]): at least one.
        size (tuple[int, int]): height and width in px of the image whose
            attention is in the maps.
        query (tuple[int, int]): row and column of the query pixel in it.
        samples (int): images that the distances are a mean over.
        iteration (int): how many were trained before it.
        name (str): what figures call it.
    """
    layers: list
    size: tuple
    query: tuple
    samples: int
    iteration: int = 0
    name: str = 'model'

    @property
    def view(self) -> dict:
        """What must agree between records that one figure compares."""
        return dict(
            layers=[(layer.name, *layer.maps.shape) for layer in self.layers],
            query=tuple(self.query), size=tuple(self.size),
            samples=self.samples)


def save_attention(record: AttentionRecord, path) -> None:
    """Write a record, whole or not at all; folders are made."""
    layers = [{key: v for key, v in vars(layer).items() if key != 'maps'}
              for layer in record.layers]
    header = dict(vars(record), layers=layers, format=FORMAT)
    arrays = {f'maps{i}': layer.maps for i, layer in enumerate(record.layers)}
    with atomic_write(path) as file:
        np.savez_compressed(file, header=json.dumps(header), **arrays)


def read_attention_record(path) -> AttentionRecord:
    """Read what :func:`save_attention` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such record, or a broken one.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(str(arrays['header']))
            if header.pop('format') != FORMAT:
                raise ValueError('another format')
            layers = [LayerAttention(**about, maps=arrays[f'maps{i}'])
                      for i, about in enumerate(header.pop('layers'))]
            return AttentionRecord(layers=layers, **header)
    except FileNotFoundError:
        raise
    # What numpy and zipfile raise on broken files has no common class.
    except Exception as error:
        raise ValueError(
            f'{path}: expected an attention record, as AttentionMapHook or '
            'save_attention writes it, got another file or a broken one'
        ) from error


def attention_path(run, name: str, iteration: int) -> Path:
    """Where a run keeps its record of an iteration, in its log folder."""
    return Path(run) / 'attention' / f'{name}_{iteration:08d}.npz'


def read_attention_history(
        work_dir, name: str = 'attention') -> list[AttentionRecord]:
    """Read what an ``AttentionMapHook`` wrote while a network trained.

    A resumed run goes on where the one before it stood: of records at or
    after its first one, those of earlier runs are dropped.

    Args:
        work_dir (str | Path): a work dir.
        name (str): the hook's ``name``.

    Returns:
        list[AttentionRecord]: by iteration.

    Raises:
        FileNotFoundError: if no run in it has such records.
    """
    runs = read_attention_histories(work_dir)
    if name not in runs:
        raise FileNotFoundError(
            f'{work_dir}: expected attention records {name!r} of a run, '
            f'<run>/attention/{name}_*.npz, got {sorted(runs) or "none"}; '
            f'{"name one of these, or " if runs else ""}train with '
            'AttentionMapHook')
    return runs[name]


def read_attention_histories(work_dir) -> dict[str, list[AttentionRecord]]:
    """Read the records of every ``AttentionMapHook``, by its name."""
    runs: dict[str, dict[int, Path]] = {}
    for folder in log_folders(work_dir):
        for path in sorted((folder / 'attention').glob('*_*.npz')):
            name, _, digits = path.stem.rpartition('_')
            if digits.isdecimal():  # a start's first one ends what was before
                kept = {i: file for i, file in runs.get(name, {}).items()
                        if i < int(digits)}
                runs[name] = {**kept, int(digits): path}
    return {name: [*map(read_attention_record, files.values())]
            for name, files in sorted(runs.items())}
