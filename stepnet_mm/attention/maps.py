"""Where the heads of a network look, and how far: what is drawn and kept."""
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

#: What the header of a file of ours says.
FORMAT = 'stepnet_mm attention 1'


def mean_attention_distance(layer, x: Tensor, pixel=(1., 1.)) -> Tensor:
    r"""How far each head looks.

    :math:`\sum_k a_{q,k} \|k - q\|_2`, the distance between query and key
    weighted by the attention, in the mean over all query pixels and images
    (Dosovitskiy et al. 2021, appendix D.7).

    Args:
        layer (RelativeSelfAttention2d): the layer.
        x (Tensor): its input, (N, C, H, W).
        pixel (tuple[float, float]): height and width of one of its pixels.
            Defaults to 1.

    Returns:
        Tensor: (heads, ), float64, in the unit of ``pixel``.
    """
    if not layer.content:  # every image has the same
        x = x[:1]
    rows = zip(layer.attention_by_row(x), _distances(layer, x, pixel))
    means = [torch.einsum('nhqkl,qkl->h', a.double(), d) / len(x) / len(d)
             for a, d in rows]
    return torch.stack(means).mean(0)


def uniform_attention_distance(layer, x: Tensor, pixel=(1., 1.)) -> float:
    """The same of a head that looks everywhere alike."""
    rows = [distances.mean() for distances in _distances(layer, x, pixel)]
    return float(torch.stack(rows).mean())


def _distances(layer, x: Tensor, pixel):
    """Of each row of query pixels to all keys: (W', H, W)."""
    sizes = [size + 2 * p for size, p in zip(x.shape[2:], layer.padding)]
    rows, columns = [
        torch.arange(size, dtype=torch.float64, device=x.device) * p
        for size, p in zip(sizes, pixel)]
    crop = layer.crop
    across = columns - columns[crop[1]:sizes[1] - crop[1], None]
    for row in rows[crop[0]:sizes[0] - crop[0]]:
        yield torch.hypot((rows - row)[:, None], across[:, None])


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
        uniform (float): the same of a head that looks everywhere alike.
        pixel (tuple[float, float]): height and width of a map's pixel, in px
            of the image.
        padding (tuple[int, int]): pixels around the map in ``maps``.
    """
    name: str
    maps: np.ndarray
    query: tuple
    distance: list
    uniform: float
    pixel: tuple
    padding: tuple

    @property
    def centers(self) -> np.ndarray:
        """(heads, 2): the mean place that the query looks at, image px.

        Row and column, from the image's upper left corner.
        """
        places = [
            (np.arange(size) - padding + .5) * pixel
            for size, padding, pixel in zip(
                self.maps.shape[1:], self.padding, self.pixel)]
        return np.stack([self.maps.sum(2) @ places[0],
                         self.maps.sum(1) @ places[1]], 1)

    @property
    def place(self) -> tuple:
        """The middle of the query pixel, as ``centers``."""
        return tuple((q - padding + .5) * pixel for q, padding, pixel in zip(
            self.query, self.padding, self.pixel))


@dataclass
class AttentionRecord:
    """Attention of a network's layers, in the order in which they run.

    Attributes:
        layers (list[LayerAttention]): at least one.
        image (ndarray): (H, W, 3) RGB, uint8, whose attention is in the maps;
            a large one at a fraction of its size.
        size (tuple[int, int]): the image's height and width, px.
        samples (int): images that the distances are a mean over.
        step (int): iterations trained.
        name (str): what figures call it.
    """
    layers: list
    image: np.ndarray
    size: tuple
    samples: int
    step: int = 0
    name: str = 'model'


def save_attention(record: AttentionRecord, path) -> None:
    """Write a record, whole or not at all; folders are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    layers = []
    for layer in record.layers:
        layers.append(dict(vars(layer)))
        del layers[-1]['maps']
    header = {**vars(record), 'layers': layers, 'format': FORMAT}
    del header['image']
    arrays = {f'maps{i}': layer.maps for i, layer in enumerate(record.layers)}
    beside = path.with_name(f'{path.name}.unfinished')
    with open(beside, 'wb') as file:
        np.savez_compressed(
            file, header=json.dumps(header), image=record.image, **arrays)
    os.replace(beside, path)


def read_attention(path) -> AttentionRecord:
    """Read what :func:`save_attention` wrote.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such record, or a broken one.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f'{path}: there is no such file; expected an attention record, '
            'as tools/analysis/measure_attention.py writes it')
    try:
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(str(arrays['header']))
            if header.pop('format') != FORMAT:
                raise ValueError('another format')
            layers = [LayerAttention(**fields, maps=arrays[f'maps{i}'])
                      for i, fields in enumerate(header.pop('layers'))]
            return AttentionRecord(
                layers=layers, image=arrays['image'], **header)
    # What numpy and zipfile raise on broken files has no common class.
    except Exception as error:
        raise ValueError(
            f'{path}: expected an attention record, as '
            'tools/analysis/measure_attention.py and AttentionMapHook write '
            f'it, got a file that is none or is broken ({error})') from error


def attention_path(run, name: str, step: int) -> Path:
    """Where a run keeps its record of an iteration, in its log folder."""
    return Path(run) / 'attention' / f'{name}_{step:08d}.npz'


def read_attention_run(work_dir, name: str = 'attention') -> list:
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
    found = {}
    for run in sorted(Path(work_dir).glob('*/attention')):
        new = {int(path.stem.rpartition('_')[2]): path
               for path in run.glob(f'{name}_{"[0-9]" * 8}.npz')}
        first = min(new, default=math.inf)
        found = {step: path for step, path in found.items() if step < first}
        found.update(new)
    if not found:
        raise FileNotFoundError(
            f'{work_dir}: no run in it has attention records {name!r}, '
            f'expected <run>/attention/{name}_*.npz written with '
            'AttentionMapHook')
    return [read_attention(found[step]) for step in sorted(found)]
