#!/usr/bin/env python
"""Put the first pictures of a folder into one.

python tools/analysis/contact_sheet.py work_dirs/demo/drawn sheet.png
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path

import cv2
import numpy as np

from stepnet_mm.utils.command_line import check_output, output_file, positive

GAP = 4
WHITE = (255, 255, 255)


def tile(images, columns):
    """Pictures of any size -> one, each scaled to the first one's, framed."""
    height, width = images[0].shape[:2]
    images = [
        cv2.copyMakeBorder(
            cv2.resize(image, (width, height)), *[GAP] * 4,
            cv2.BORDER_CONSTANT, value=WHITE) for image in images
    ]
    images += [np.full_like(images[0], 255)] * (-len(images) % columns)
    rows = [
        np.hstack(images[i:i + columns])
        for i in range(0, len(images), columns)
    ]
    return np.vstack(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', help='folder of pictures, searched deep')
    parser.add_argument('out', type=output_file, help='picture to write')
    parser.add_argument('--number', type=positive, default=8,
                        help='the most pictures')
    parser.add_argument('--columns', type=positive, default=2,
                        help='pictures side by side')
    args = parser.parse_args()
    found = sorted(
        path for kind in ('*.png', '*.jpg')
        for path in Path(args.folder).rglob(kind))
    if not found:
        parser.error(f'folder: expected some .png or .jpg, got none in '
                     f'{args.folder}; name another')
    check_output('out', args.out, found[:args.number])
    images = [cv2.imread(str(path)) for path in found[:args.number]]
    cv2.imwrite(str(args.out), tile(images, args.columns))
    print(args.out)


if __name__ == '__main__':
    main()
