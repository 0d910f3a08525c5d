#!/usr/bin/env python
r"""Turn a config of mmdet, mmpretrain or mmseg into that of its StepNet.

python tools/to_stepnet.py mmdet::atss/atss_r50_fpn_1x_coco.py --out atss.py
python tools/to_stepnet.py my_config.py          # prints it
python tools/to_stepnet.py mmdet::atss/atss_r50_fpn_1x_coco.py \
    --data FOLDER --out my_atss.py               # for your own data

What is written inherits CONFIG and changes its backbones' types; without
--out it is for a file beside CONFIG. What has no counterpart is refused with
the reason. FOLDER holds COCO files, Pascal VOC or images in folders by class;
what is found in it goes to stderr.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import sys
from pathlib import Path

import stepnet_mm  # registers modules
from stepnet_mm.config import OptionsAction, add_image_scale
from stepnet_mm.config.conversion import to_stepnet
from stepnet_mm.config.own_data import find_data
from stepnet_mm.utils.command_line import command_parser


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        'config', help='a path, or mmdet::FOLDER/FILE.py as in _base_')
    parser.add_argument('--out', help='new file to write; default: print')
    parser.add_argument(
        '--step', help='type of the steps; default: StepAdaptor')
    parser.add_argument(
        '--step-options', nargs='+', default={}, action=OptionsAction,
        help='arguments of --step, key=value')
    parser.add_argument(
        '--data', metavar='FOLDER', help='your own data: sets datasets, '
        'evaluators, classes, and a TNSHook')
    parser.add_argument(
        '--plain', action='store_true',
        help='with --data: the backbones stay as they are')
    add_image_scale(parser)
    args = parser.parse_args()
    if args.plain and (not args.data or args.step):
        parser.error('--plain: expected a --data and no --step beside it; '
                     'correct them')
    if args.step_options and not args.step:
        parser.error('--step-options: expected a --step beside it, got none; '
                     'name one')
    return parser, args


def main():
    parser, args = parse_args()
    step = args.step and dict(type=args.step, **args.step_options)
    try:
        data = find_data(args.data) if args.data else None
        text = to_stepnet(args.config, args.out, step, data, args.plain,
                          args.image_scale)
        if args.out:
            path = Path(args.out)
            path.parent.mkdir(parents=True, exist_ok=True)
            # A file that is there may be CONFIG, or one of its bases.
            with path.open('x') as file:
                file.write(text)
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f'--out: expected a new file, got {args.out}: '
                     f'{error.strerror}; name another')
    if data:
        print(data, file=sys.stderr)
    if args.out:
        print(args.out)
    else:
        print(text, end='')


if __name__ == '__main__':
    main()
