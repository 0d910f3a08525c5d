"""No label over another, none cut off, no legend over data."""

import pandas as pd
import pytest
from legibility import assert_legible, cut_off, hidden, overlapping, written
from made_records import make_attention_record, make_record, named
from paper_figures import step_figure, tns_figure
from rank_correlation import plot_correlation

from stepnet_mm.visualization import (
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
    curve_figure,
    depth_figure,
    proportion_figure,
    seeds_figure,
    style,
    survival_figure,
)

pytest.importorskip('matplotlib')

SEVERAL = [named(f'resnet164_{name}_cifar10', (5, 5, 5), seed=i)
           for i, name in enumerate(('plain', 'se', 'stepnet', 'srm'))]
CURVE = [dict(step=100 * i, tns=.9 - .02 * i, tns_median=.8, tns_q95=1. + i,
              nsi_stage1_mean=1., nsi_stage1_max=1.4, nsi_stage2_mean=.8,
              nsi_stage2_max=2., nonfinite=0) for i in range(1, 20)]
RUNS = pd.DataFrame([
    dict(name=f'method_{i}_seed{s}', tns=i + .1 * s, metric=90. - i)
    for i in range(17) for s in range(3)])


def attention():
    return [make_attention_record(i, layers=1) for i in (0, 500)]


FIGURES = dict(
    curve=lambda: curve_figure(CURVE),
    depth=lambda: depth_figure([make_record((26, 26, 26), samples=5)]),
    seeds=lambda: seeds_figure(
        [named(f'SE_seed{i}', seed=i) for i in range(9)]),
    survival=lambda: survival_figure(SEVERAL[:3]),
    proportion=lambda: proportion_figure(
        SEVERAL[:3], [.01 * i for i in range(30)], [.1 * i for i in range(40)]
    ),
    step=lambda: step_figure(SEVERAL[2]),
    tns=lambda: tns_figure(SEVERAL),
    correlation=lambda: plot_correlation(RUNS, 'accuracy/top1', 'TNS', 'runs'),
    maps=lambda: attention_map_figure(attention()[0]),
    paths=lambda: attention_path_figure(attention()),
    range=lambda: attention_range_figure(attention()))


#: Drawn in the short run: a curve, panels, notes beside lines, a table.
SHORT = {'curve', 'step', 'tns', 'correlation'}


@pytest.mark.parametrize('name', [pytest.param(
    name, marks=() if name in SHORT else pytest.mark.long)
    for name in FIGURES])
def test_all_text_can_be_read(name):
    assert_legible(FIGURES[name]())


def crowded():
    figure = style.styled(lambda: depth_figure(SEVERAL[:1]))()
    axes = figure.axes[0]
    axes.text(.5, .5, 'one label', transform=axes.transAxes)
    axes.text(.52, .5, 'another', transform=axes.transAxes)
    axes.text(-9., .5, 'far outside', transform=axes.transAxes,
              in_layout=False)
    axes.legend(axes.lines, ['over data'], loc='center')
    return figure


def test_what_cannot_be_read_is_seen():
    figure = crowded()
    texts = written(figure)
    assert ('one label', 'another') in overlapping(texts)
    assert cut_off(figure, texts) == ['far outside']
    assert hidden(figure) == ['stage 1']
