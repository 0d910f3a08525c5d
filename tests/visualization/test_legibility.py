"""No label over another, none cut off, no legend over data."""
import itertools
from unittest import mock

import pytest
from made_records import make_attention_record, make_record, named
from matplotlib.text import Text
from paper_figures import step_figure, tns_figure

from stepnet_mm.visualization import (
    as_image,
    attention_figures,
    depth_figure,
    proportion_figure,
    seeds_figure,
    survival_figure,
    training_figure,
)

#: What a box may lose to rounding, and an accent may reach out, in px.
SLACK = 2
SEVERAL = [named(f'resnet164_{name}_cifar10', (5, 5, 5), seed=i)
           for i, name in enumerate(('plain', 'se', 'stepnet', 'srm'))]
CURVE = [dict(step=100 * i, tns=.9 - .02 * i, tns_median=.8, tns_q95=1. + i,
              nsi_stage1_mean=1., nsi_stage1_max=1.4, nsi_stage2_mean=.8,
              nsi_stage2_max=2., nonfinite=0) for i in range(1, 20)]


def attention(name):
    return attention_figures([
        make_attention_record(i, layers=1) for i in (0, 500)])[name]


FIGURES = dict(
    curve=lambda: training_figure(CURVE),
    depth=lambda: depth_figure([make_record((26, 26, 26), samples=5)]),
    seeds=lambda: seeds_figure(
        [named(f'SE_seed{i}', seed=i) for i in range(9)]),
    survival=lambda: survival_figure(SEVERAL[:3]),
    proportion=lambda: proportion_figure(SEVERAL[:3]),
    step=lambda: step_figure(SEVERAL[2]),
    tns=lambda: tns_figure(SEVERAL),
    maps=lambda: attention('maps'),
    range=lambda: attention('range'))
#: Drawn in the short run: a curve, panels, notes beside lines, a table.
SHORT = {'curve', 'step', 'tns'}


def written(figure) -> list:
    """Each text that drawing the figure puts on paper, with its box in px."""
    drawn, draw = {}, Text.draw

    def spy(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        draw(text, renderer)

    with mock.patch.object(Text, 'draw', spy):
        as_image(figure)
    return [(text.get_text(), text.get_window_extent())
            for text in drawn.values()]


def overlap(a, b) -> bool:
    return (min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK
            and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK)


@pytest.mark.parametrize('name', [pytest.param(
    name, marks=() if name in SHORT else pytest.mark.long)
    for name in FIGURES])
def test_all_text_can_be_read(name):
    figure = FIGURES[name]()
    texts, edge = written(figure), figure.bbox
    assert texts
    assert not [text for text, box in texts
                if min(box.x0 - edge.x0, edge.x1 - box.x1,
                       box.y0 - edge.y0, edge.y1 - box.y1) < -SLACK]
    assert not [(one, other) for (one, a), (other, b)
                in itertools.combinations(texts, 2) if overlap(a, b)]
    legends = [*figure.legends, *filter(
        None, (axes.get_legend() for axes in figure.axes))]
    assert not [legend for legend in legends for axes in figure.axes
                if overlap(axes.get_window_extent(),
                           legend.get_window_extent())]
