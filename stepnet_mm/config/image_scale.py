"""The option --image-scale: the size to which a config's images are scaled."""
import copy
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

import numpy as np
from mmengine.config import Config

from .lookup import (
    dicts_by_path,
    dicts_of_type,
    later_pipelines,
    loaders_of,
    type_name,
)

#: Transforms that crop to a size -> their argument for it.
CROPS = dict(RandomResizedCrop='scale', CenterCrop='crop_size')


def add_image_scale(parser: ArgumentParser) -> None:
    """Add the option of :func:`set_image_scale`."""
    parser.add_argument(
        '--image-scale', nargs=2, type=int, metavar=('LONG', 'SHORT'),
        help='scale of every Resize, px; a crop gets the SHORT edge')


def set_image_scale(cfg: Config, scale: Sequence[int]) -> None:
    """Set the scale, long and short edge in px, of every resizing transform.

    A classifier's crops get the short edge, and what is resized before a crop
    stays as much larger.

    Raises:
        ValueError: if a data loader, or a pipeline to which a hook switches,
            has none.
    """
    for name, part in (*loaders_of(cfg).items(), *later_pipelines(cfg)):
        found = dicts_of_type(part, 'Resize', 'RandomResize',
                              'RandomChoiceResize')
        crops = dicts_of_type(part, *CROPS)
        if not found and not crops:
            raise ValueError(
                f'--image-scale: expected a Resize, RandomResize, '
                f'RandomChoiceResize, {" or ".join(CROPS)} to change, got '
                f'none in {name}; leave it out')
        for transform in found:
            if 'scales' in transform:
                transform['scales'] = [tuple(scale)]
            else:
                transform['scale'] = tuple(scale)
        for crop in crops:
            _crop_to(part, crop, min(scale))


def scale_changes(cfg: Config, scale: Sequence[int]) -> Iterator[tuple]:
    """The keys and list indices of each transform -> its new scale."""
    changed = copy.deepcopy(cfg)
    set_image_scale(changed, scale)
    both = (dicts_by_path(dict(each.items())) for each in (cfg, changed))
    for (path, old), (_, new) in zip(*both):
        found = {key: new[key] for key in ('scale', 'scales', 'crop_size')
                 if new.get(key) != old.get(key)}
        if found:
            yield path, found


def _crop_to(part, crop: dict, edge: int) -> None:
    """Set a crop, and what is resized to an edge before it, to a size."""
    key = CROPS[type_name(crop)]
    for resize in dicts_of_type(part, 'ResizeEdge'):
        resize['scale'] = round(resize['scale'] * edge / np.max(crop[key]))
    crop[key] = edge
