#!/usr/bin/env python
"""Draw what a trained network sees in pictures of your own.

python tools/predict.py CONFIG CHECKPOINT IMAGE_OR_FOLDER --out predicted

By the inferencer of the config's library; with --steps also Δt by block.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from pathlib import Path

import torch
from PIL import Image

import stepnet_mm  # registers modules and the safe loader
from stepnet_mm.config import add_custom_import, library_of
from stepnet_mm.config.own_data import IMAGES
from stepnet_mm.launch.entry import config_from, make_config_parser
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.steps.base import step_sizes_of
from stepnet_mm.visualization.style import new_figure, save_figure, styled


def parse_args():
    parser = make_config_parser(__doc__)
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument('images', type=Path, metavar='IMAGE_OR_FOLDER')
    parser.add_argument(
        '--out', type=Path, default=Path('predicted'),
        help='folder to draw into (default: predicted)')
    parser.add_argument(
        '--score', type=float, default=.3,
        help='least score of what a detector draws')
    parser.add_argument(
        '--steps', action='store_true', help='Δt by block of each picture')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    args = parser.parse_args()
    args.images = pictures(parser, args.images)
    return args


def pictures(parser, path):
    """A picture, or those in a folder by name."""
    found = sorted(path.iterdir()) if path.is_dir() else [path]
    found = [p for p in found if p.suffix.lower() in IMAGES and p.is_file()]
    if not found:
        parser.error(f'IMAGE_OR_FOLDER: expected a picture or a folder of '
                     f'them ({", ".join(IMAGES)}), got {path}; name another')
    return found


def detector(cfg, args):
    """The network, and what draws a picture and returns its path and text."""
    from mmdet.apis import DetInferencer
    run = DetInferencer(cfg, args.checkpoint, args.device, show_progress=False)

    def predict(path):
        run.num_visualized_imgs = 0
        run(str(path), out_dir=str(args.out), pred_score_thr=args.score)
        return args.out / 'vis' / path.name, ''

    return run.model, predict


def classifier(cfg, args):
    """The same of a classifier, with its top five."""
    from mmpretrain import ImageClassificationInferencer
    run = ImageClassificationInferencer(
        cfg, pretrained=args.checkpoint, device=args.device)
    names = run.classes or range(10 ** 6)  # the labels themselves

    def predict(path):
        edge = max(224, *Image.open(path).size)  # text on 32 px is a blot
        found, = run(str(path), show_dir=str(args.out), resize=edge)
        scores = torch.as_tensor(found['pred_scores'])
        best = scores.topk(min(5, len(scores)))
        return args.out / f'{path.stem}.png', ', '.join(
            f'{names[i]} {100 * score:.1f} %'
            for score, i in zip(*map(torch.Tensor.tolist, best)))

    return run.model, predict


def segmentor(cfg, args):
    """The same of a segmentor, without a text."""
    from mmseg.apis import MMSegInferencer
    run = MMSegInferencer(cfg, args.checkpoint, device=args.device)

    def predict(path):
        run(str(path), out_dir=str(args.out))
        return args.out / 'vis' / path.name, ''

    return run.model, predict


PREDICTORS = dict(mmdet=detector, mmpretrain=classifier, mmseg=segmentor)


@styled
def draw_steps(recorder, path, image):
    """Mean Δt of each measured block, which the figure's path shows."""
    steps = recorder.step[-1].tolist()
    names = [name.removeprefix('backbone.') for name in recorder.blocks]
    figure = new_figure(6, 1 + .22 * len(names))
    axes = figure.add_subplot()
    axes.bar_label(axes.barh(names, steps), fmt=' %.3f')
    axes.invert_yaxis()
    axes.set(xlabel='Δt, mean over channels and places',
             title=f'{image.name}: all blocks but the first of each stage')
    return save_figure(figure, path)


def main():
    args = parse_args()
    cfg = config_from(args)
    add_custom_import(cfg)
    library = library_of(cfg) or cfg.get('default_scope')
    if library not in PREDICTORS:
        raise ValueError(f'{args.config}: expected a config of '
                         f'{", ".join(PREDICTORS)}, got {library}; name '
                         'another')
    args.out.mkdir(parents=True, exist_ok=True)
    model, predict = PREDICTORS[library](cfg, args)
    if args.steps and not step_sizes_of(model):
        raise ValueError(f'--steps: expected steps in the network of '
                         f'{args.config}, got none; leave --steps out')
    for image in args.images:
        if args.steps:
            with TrajectoryRecorder(model) as recorder:
                drawn, text = predict(image)
            print(draw_steps(recorder, args.out / f'{image.stem}_steps.png',
                             image))
        else:
            drawn, text = predict(image)
        print(drawn, text)


if __name__ == '__main__':
    main()
