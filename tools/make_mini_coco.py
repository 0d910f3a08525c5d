#!/usr/bin/env python
"""Draw a small detection dataset in COCO format.

python tools/make_mini_coco.py data/mini_coco
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.utils.command_line import command_parser


def main():
    parser = command_parser(__doc__)
    parser.add_argument('root', help='folder to draw into')
    parser.add_argument('--train', type=int, default=240, help='images')
    parser.add_argument('--val', type=int, default=60, help='images')
    parser.add_argument('--size', type=int, default=192, help='edge, px')
    parser.add_argument('--seed', type=int, default=0, help='of the drawing')
    args = parser.parse_args()
    make_mini_coco(**vars(args))
    print(f'{args.train} + {args.val} images drawn in {args.root}')


if __name__ == '__main__':
    main()
