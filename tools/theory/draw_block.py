#!/usr/bin/env python
"""The README's picture: a residual block and StepNet's, side by side.

python tools/theory/draw_block.py                     # docs/figures/block.png
python tools/theory/draw_block.py --theme dark --out block.svg

Its background makes it legible on any page.
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Line

from stepnet_mm.utils.command_line import command_parser
from stepnet_mm.visualization import save_figure, style
from stepnet_mm.visualization.style import new_figure

#: In units of the drawing, of which the picture is 8 wide.
WIDTH, HEIGHT = 8., 5.1
#: Heights: x_t, the branch, f, f seen by the adaptor, the sum, x_{t+1}.
TOP, BRANCH, BOX, SEEN, SUM, END = 3.86, 3.5, 2.84, 2.28, 1.65, 1.06
RADIUS = .19  # of a sign


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument(
        '--out', default='docs/figures/block.png', help='picture')
    style.add_options(parser)
    return parser.parse_args()


def box(axes, x, y, width, height, fill, edge, corner=.12, zorder=2):
    """A rectangle with round corners around (x, y)."""
    axes.add_patch(FancyBboxPatch(
        (x - width / 2 + corner, y - height / 2 + corner),
        width - 2 * corner, height - 2 * corner,
        boxstyle=f'round,pad={corner}', facecolor=fill, edgecolor=edge,
        linewidth=style.points(1.4), zorder=zorder))


def text(axes, x, y, words, size=14, **options):
    axes.text(x, y, words, fontsize=style.points(size), ha='center',
              va='center', zorder=4, **options)


def arrow(axes, color, *places):
    """Through the places; the head is at the last one."""
    axes.add_patch(FancyArrowPatch(
        path=Line(places), color=color, linewidth=style.points(2),
        arrowstyle='-|>,head_width=.28,head_length=.5', fill=False,
        mutation_scale=style.points(10), joinstyle='miter', zorder=1))


def sign(axes, x, y, words, color):
    """A circled operation."""
    axes.add_patch(Circle(
        (x, y), RADIUS, facecolor=style.theme().paper, edgecolor=color,
        linewidth=style.points(1.6), zorder=3))
    text(axes, x, y - .01, words, 15, color=color)


def card(axes, left, right, title, subtitle, formula):
    """The ground of one block, with its headings."""
    now, middle = style.theme(), (left + right) / 2
    box(axes, middle, HEIGHT / 2, right - left, HEIGHT - .08, now.panel,
        now.grid, .18, zorder=0)
    text(axes, middle, HEIGHT - .36, title, weight='bold')
    text(axes, middle, HEIGHT - .7, subtitle, 11.5, color=now.muted)
    text(axes, middle, .42, formula)


def block(axes, left, right):
    """x_t, the way around f, f itself, the sum, x_{t+1}."""
    ink, blue = style.theme().ink, style.color(0)
    text(axes, left, TOP + .12, '$x_t$', 19)
    arrow(axes, ink, (left, TOP - .12), (left, SUM + RADIUS))
    arrow(axes, ink, (left, SUM - RADIUS), (left, END + .12))
    arrow(axes, blue, (left, BRANCH), (right, BRANCH), (right, BOX + .33))
    box(axes, right, BOX, 1., .66, style.theme().paper, blue)
    text(axes, right, BOX, '$f$', 19, color=blue)
    arrow(axes, blue, (right, BOX - .33), (right, SUM), (left + RADIUS, SUM))
    sign(axes, left, SUM, '$+$', ink)
    text(axes, left, END - .1, '$x_{t+1}$', 19)


def adaptor(axes, left, plus, x):
    """The adaptor: sees x_t and x_t + f, gives the step size."""
    orange = style.color(1)
    edge = x - .62
    arrow(axes, orange, (left, BRANCH), (x, BRANCH), (x, BOX + .33))
    arrow(axes, orange, (plus, BRANCH), (plus, SEEN + RADIUS))
    arrow(axes, orange, (left, SEEN), (plus - RADIUS, SEEN))
    arrow(axes, orange, (plus + RADIUS, SEEN), (edge, SEEN))
    sign(axes, plus, SEEN, '$+$', orange)
    box(axes, x, 2.59, 2 * (x - edge), 1.16, style.theme().paper, orange)
    text(axes, x, 2.59, 'adaptor', 13, color=orange, weight='bold')
    arrow(axes, orange, (x, 2.01), (x, SUM), (left + RADIUS, SUM))
    sign(axes, left, SUM, r'$\times$', orange)
    text(axes, (plus + x) / 2, BRANCH + .2, '$x_t$', 15, color=orange)
    text(axes, (plus + RADIUS + edge) / 2, SEEN + .21, '$x_t + f(x_t)$', 12,
         color=orange)
    text(axes, (left + x) / 2, SUM + .21, r'$\Delta t$', 17, color=orange)


def draw():
    """Both blocks, in the current style."""
    figure = new_figure(7., 7. * HEIGHT / WIDTH, formulas=True)
    figure.set_layout_engine('none')  # every place is given
    figure.patch.set_alpha(0)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT),
                           aspect='equal')
    axes.set_axis_off()
    card(axes, .04, 2.9, 'Residual block', 'step size 1',
         '$x_{t+1} = x_t + f(x_t)$')
    block(axes, .85, 2.1)
    card(axes, 3.02, WIDTH - .04, 'StepNet block',
         'step size Δt, per image and channel',
         r'$x_{t+1} = x_t + \Delta t \otimes f(x_t)$')
    adaptor(axes, 4.75, 5.45, 7.22)
    block(axes, 3.6, 4.75)
    return figure


def main():
    args = parse_args()
    with style.use(args.size, args.theme):
        save_figure(style.styled(draw)(), args.out, dpi=230)
    print(args.out)


if __name__ == '__main__':
    main()
