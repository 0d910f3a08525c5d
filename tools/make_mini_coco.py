#!/usr/bin/env python
"""Draw a small detection dataset in COCO format.

python tools/make_mini_coco.py data/mini_coco

Circles, squares and triangles of three sizes lie over one another on a noisy
background. Later objects hide earlier ones; boxes and masks are those of the
whole shape, as COCO annotates it. The same arguments give the same files. The
second image of each split has no object; the third has a crowd annotation.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import json
from pathlib import Path

import cv2
import numpy as np

from stepnet_mm.utils.command_line import command_parser

CLASSES = ('circle', 'square', 'triangle')
#: Object diameter in px on a canvas of 192; COCO calls an area under 32²
#: small and one over 96² large.
DIAMETERS = dict(small=(18, 28), medium=(36, 80), large=(120, 150))
CANVAS = 192


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('root', help='folder to draw into')
    parser.add_argument('--train', type=int, default=240, help='images')
    parser.add_argument('--val', type=int, default=60, help='images')
    parser.add_argument('--size', type=int, default=CANVAS,
                        help='edge, px, at least 64')
    parser.add_argument('--seed', type=int, default=0, help='of the drawing')
    return parser.parse_args()


def make_mini_coco(root, train=240, val=60, size=CANVAS, seed=0):
    """Draw ``train2017``, ``val2017`` and their annotation files."""
    for index, (split, number) in enumerate(
            dict(train2017=train, val2017=val).items()):
        rng = np.random.default_rng([seed, index])
        folder, labels = Path(root, split), Path(root, 'annotations')
        folder.mkdir(parents=True, exist_ok=True)
        labels.mkdir(exist_ok=True)
        images, annotations = [], []
        for i in range(number):
            canvas, objects = _draw_image(i, size, rng)
            name = f'{i + 1:012d}.jpg'
            cv2.imwrite(
                str(folder / name), canvas, [cv2.IMWRITE_JPEG_QUALITY, 95])
            images.append(
                dict(id=i + 1, file_name=name, height=size, width=size))
            for entry in objects:
                entry.update(id=len(annotations) + 1, image_id=i + 1)
                annotations.append(entry)
        (labels / f'instances_{split}.json').write_text(json.dumps(dict(
            info=dict(description='mini-COCO drawn by stepnet_mm',
                      version='1'),
            licenses=[], images=images, annotations=annotations,
            categories=[dict(id=k, name=name, supercategory='shape')
                        for k, name in enumerate(CLASSES, 1)])))


def _draw_image(i: int, size: int, rng):
    canvas = _background(size, rng)
    if i == 1:
        return canvas, []
    kinds = rng.choice(
        list(DIAMETERS), p=(.35, .45, .2), size=rng.integers(2, 6))
    objects = [_draw_object(canvas, kind, size, rng) for kind in kinds]
    if i == 2:
        objects.append(_draw_crowd(canvas, size, rng))
    return canvas, objects


def _background(size: int, rng) -> np.ndarray:
    """A smooth random colour field with pixel noise, (size, size, 3)."""
    coarse = rng.integers(40, 140, (4, 4, 3)).astype(np.uint8)
    smooth = cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)
    noise = rng.normal(0, 6, smooth.shape)
    return np.clip(smooth + noise, 0, 255).astype(np.uint8)


def _draw_object(canvas, kind: str, size: int, rng) -> dict:
    low, high = (d * size / CANVAS for d in DIAMETERS[kind])
    radius = rng.uniform(low, high) / 2
    centre = rng.uniform(radius, size - radius, 2)
    category = int(rng.integers(len(CLASSES)))
    polygon = _polygon(category, centre, radius, rng)
    _fill(canvas, polygon, rng)
    x0, y0 = polygon.min(0).round(2).tolist()
    x1, y1 = polygon.max(0).round(2).tolist()
    x, y = polygon.T
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    return dict(
        category_id=category + 1,
        bbox=[x0, y0, round(x1 - x0, 2), round(y1 - y0, 2)],
        area=round(float(area), 2),
        segmentation=[polygon.round(2).ravel().tolist()], iscrowd=0)


def _polygon(category: int, centre, radius: float, rng) -> np.ndarray:
    """Corners of a shape, (K, 2) in px: upright, but for up to 15 degrees."""
    corners = (32, 4, 3)[category]
    upright = (0, np.pi / 4, -np.pi / 2)[category]
    turn = upright + np.deg2rad(rng.uniform(-15, 15))
    angles = turn + 2 * np.pi * np.arange(corners) / corners
    return centre + radius * np.stack([np.cos(angles), np.sin(angles)], 1)


def _fill(canvas, polygon, rng) -> None:
    colour = rng.integers(120, 256, 3).tolist()
    points = np.round(polygon).astype(np.int32)
    cv2.fillPoly(canvas, [points], colour)
    cv2.polylines(canvas, [points], True, (20, 20, 20), 1)


def _draw_crowd(canvas, size: int, rng) -> dict:
    """A heap of small circles under one crowd annotation (RLE, as COCO's)."""
    mask = np.zeros((size, size), np.uint8)
    for centre in rng.uniform(size * .1, size * .3, (12, 2)):
        polygon = _polygon(0, centre, size / 24, rng)
        _fill(canvas, polygon, rng)
        cv2.fillPoly(mask, [np.round(polygon).astype(np.int32)], 1)
    return dict(
        category_id=1, bbox=cv2.boundingRect(mask), area=int(mask.sum()),
        segmentation=dict(size=[size, size], counts=_run_lengths(mask)),
        iscrowd=1)


def _run_lengths(mask) -> list[int]:
    """COCO's uncompressed RLE: column-major runs, zeros first."""
    flat = np.concatenate([[0], mask.ravel(order='F'), [0]])
    ends = np.flatnonzero(np.diff(flat)).tolist() + [mask.size]
    return np.diff([0] + ends).tolist()


def main():
    args = parse_args()
    make_mini_coco(**vars(args))
    print(f'{args.train} + {args.val} images drawn in {args.root}')


if __name__ == '__main__':
    main()
