#!/usr/bin/env python
"""The README's picture: a residual block and StepNet's, side by side.

python tools/theory/draw_block.py --out docs/figures/block

Writes OUT.png and OUT.svg for a light page and OUT_dark.png and OUT_dark.svg
for a dark one. Each has a background of its own with round corners, so that
it can be read on any page.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import argparse
from pathlib import Path

from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import new_figure

#: In the units of the drawing, which are about 1/100 of the README's width.
WIDTH, HEIGHT = 8., 5.1
TOP, BRANCH, BOX, SUM, END = 3.86, 3.5, 2.84, 1.65, 1.06
#: Where f's output is seen, and where Δt is multiplied.
SEEN, TIMES = 2.28, 1.65


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--out', type=Path, default=Path('docs/figures/block'),
        help='without a suffix; default docs/figures/block')
    return parser.parse_args()


class Drawing:
    """A canvas with the few shapes that a block diagram needs."""

    def __init__(self, width: float, height: float):
        self.figure = new_figure(7., 7. * height / width, formulas=True)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height), aspect='equal')
        self.axes.set_axis_off()
        self.figure.patch.set_alpha(0)
        self.figure.set_layout_engine('none')  # every place is given

    def box(self, x, y, width, height, fill, edge, round_=.12, zorder=2):
        """A rectangle with round corners around (x, y)."""
        from matplotlib.patches import FancyBboxPatch
        self.axes.add_patch(FancyBboxPatch(
            (x - width / 2 + round_, y - height / 2 + round_),
            width - 2 * round_, height - 2 * round_,
            boxstyle=f'round,pad={round_}', facecolor=fill, edgecolor=edge,
            linewidth=style.points(1.4), zorder=zorder))

    def text(self, x, y, text, size=14, **options):
        """Centred, unless the options say otherwise."""
        self.axes.text(
            x, y, text, **{**dict(ha='center', va='center', zorder=4,
                                  fontsize=style.points(size)), **options})

    def line(self, *places, color=None):
        """From place to place, with an arrow at the last one."""
        color = color or style.theme().ink
        options = dict(color=color, linewidth=style.points(2), zorder=1)
        *before, (x, y), (end_x, end_y) = places
        self.axes.annotate(
            '', (end_x, end_y), (x, y), zorder=1, arrowprops=dict(
                arrowstyle='-|>,head_width=.28,head_length=.5',
                shrinkA=0, shrinkB=0, joinstyle='miter', **options))
        self.axes.plot(*zip(*before, (x, y)), solid_joinstyle='round',
                       solid_capstyle='projecting', **options)

    def sign(self, x, y, text, color=None):
        """A circled operation."""
        from matplotlib.patches import Circle
        color = color or style.theme().ink
        self.axes.add_patch(Circle(
            (x, y), .19, facecolor=style.theme().paper, edgecolor=color,
            linewidth=style.points(1.6), zorder=3))
        self.text(x, y - .01, text, 15, color=color)


def card(drawing, left, right, title, subtitle):
    """The ground of one block, with its headings."""
    now = style.theme()
    drawing.box((left + right) / 2, HEIGHT / 2, right - left, HEIGHT - .08,
                now.panel, now.grid, .18, zorder=0)
    drawing.text((left + right) / 2, HEIGHT - .36, title, 14, weight='bold')
    drawing.text((left + right) / 2, HEIGHT - .7, subtitle, 11.5,
                 color=now.muted)


def block(drawing, left, right):
    """x_t, the way around f, f itself, the sum, x_{t+1}."""
    blue = style.color(0)
    drawing.text(left, TOP + .12, '$x_t$', 19)
    drawing.line((left, TOP - .12), (left, SUM + .2))
    drawing.line((left, SUM - .2), (left, END + .12))
    drawing.line((left, BRANCH), (right, BRANCH), (right, BOX + .33),
                 color=blue)
    drawing.box(right, BOX, 1., .66, style.theme().paper, blue)
    drawing.text(right, BOX, '$f$', 19, color=blue)
    drawing.line((right, BOX - .33), (right, SUM), (left + .2, SUM),
                 color=blue)
    drawing.sign(left, SUM, '$+$')
    drawing.text(left, END - .1, '$x_{t+1}$', 19)


def adaptor(drawing, left, x):
    """What sees both states and gives the step size."""
    orange = style.color(1)
    drawing.line((left, BRANCH), (x, BRANCH), (x, BOX + .33), color=orange)
    drawing.line((left, SEEN), (x - .72, SEEN), color=orange)
    drawing.box(x, 2.59, 1.44, 1.16, style.theme().paper, orange)
    drawing.text(x, 2.59, 'adaptor', 13, color=orange, weight='bold')
    drawing.line((x, 2.01), (x, TIMES), (left + .2, TIMES), color=orange)
    drawing.sign(left, TIMES, r'$\times$', orange)
    drawing.text((left + x) / 2 - .1, BRANCH + .2, '$x_t$', 15,
                 color=orange)
    drawing.text((left + x) / 2 - .1, SEEN + .21, '$x_t + f(x_t)$', 13,
                 color=orange)
    drawing.text((left + x) / 2 - .1, TIMES + .21, r'$\Delta t$', 17,
                 color=orange)


def draw():
    """Both blocks, in the current style."""
    drawing = Drawing(WIDTH, HEIGHT)
    card(drawing, .04, 2.9, 'Residual block', 'step size 1')
    block(drawing, .85, 2.1)
    drawing.text(1.47, .42, '$x_{t+1} = x_t + f(x_t)$', 14)
    card(drawing, 3.02, WIDTH - .04, 'StepNet block',
         'step size Δt, per image and channel')
    adaptor(drawing, 4.85, 7.1)
    block(drawing, 3.75, 4.85)
    drawing.text(5.5, .42, r'$x_{t+1} = x_t + \Delta t \otimes f(x_t)$', 14)
    return drawing.figure


def main():
    args = parse_args()
    for theme, part in (('light', ''), ('dark', '_dark')):
        with style.use(theme=theme):
            figure = style.styled(draw)()
            for suffix in ('.png', '.svg'):
                path = args.out.with_name(args.out.name + part + suffix)
                save_figure(figure, path, dpi=230)
                print(path)


if __name__ == '__main__':
    main()
