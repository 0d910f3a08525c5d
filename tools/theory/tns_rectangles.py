#!/usr/bin/env python
"""Draw what TNS is the area of: a rectangle for each stage, for one image.

python tools/theory/tns_rectangles.py RECORD docs/figures/tns.png

RECORD is of measure_stiffness.py; the image is that of median TNS.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

from pathlib import Path

from matplotlib.patches import Rectangle

from stepnet_mm.stiffness import (
    read_stiffness_record,
    stage_summary,
    total_neural_stiffness,
)
from stepnet_mm.utils.command_line import command_parser, output_file
from stepnet_mm.visualization import style


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('record', type=Path)
    parser.add_argument('out', type=output_file, help='a .png')
    return parser.parse_args()


def rectangles(nsi, stage):
    """(width, height) by stage: largest NSI over its mean, less 1, and it."""
    found = stage_summary(nsi[None], stage)
    widths = found.maximum / found.mean - 1
    return dict(zip(found.stages.tolist(), zip(
        widths[0].tolist(), found.maximum[0].tolist())))


@style.styled
def draw(nsi, stage, tns):
    """NSI of each block, and the rectangles whose union is TNS."""
    figure = style.new_figure(style.WIDTH, 3.6)
    blocks, areas = figure.subplots(1, 2)
    for number, (width, height) in rectangles(nsi, stage).items():
        color = style.color(number - 1)
        places = (stage == number).nonzero().flatten()
        own = nsi[places]
        blocks.plot(places, own, 'o', color=color, label=f'stage {number}')
        blocks.hlines(own.mean(), places[0] - .3, places[-1] + .3,
                      color=color)
        areas.add_patch(Rectangle((0, 0), width, height, facecolor=color,
                                  edgecolor=color, alpha=.35, linewidth=2))
        areas.plot(width, height, 'o', color=color)
    blocks.set(title='NSI; lines: mean of a stage', xlabel='measured block',
               ylabel='NSI (Eq. 4)', ylim=(0, None))
    areas.set(title=f'coloured area: TNS = {tns:.3f}', xlim=(0, None),
              ylim=(0, None), ylabel='largest NSI of the stage',
              xlabel='how far above its stage\'s mean, NSI / mean − 1')
    style.legend_beside(blocks)
    return figure


def main():
    args = parse_args()
    record = read_stiffness_record(args.record)
    nsi, stage = record.finite_nsi, record.stage
    tns = total_neural_stiffness(nsi, stage)
    middle = int(tns.argsort()[len(tns) // 2])
    print(style.save_figure(
        draw(nsi[middle], stage, float(tns[middle])), args.out))


if __name__ == '__main__':
    main()
