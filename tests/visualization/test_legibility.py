"""No label over another, none cut off, no legend over data."""
import importlib

import numpy as np
import pytest
from legibility import assert_legible, cut_off, hidden, overlapping
from made_records import make_attention_record, make_record, named
from made_runs import made_study

from stepnet_mm.visualization import (
    attention_map_figure,
    attention_path_figure,
    attention_range_figure,
    curve_figure,
    depth_figure,
    plot_correlation,
    property_figure,
    proportion_figure,
    seeds_figure,
    step_figure,
    style,
    survival_figure,
    tns_figure,
)

pytest.importorskip('matplotlib')
pytestmark = pytest.mark.core

SEVERAL = [named(f'resnet164_{name}_cifar10', (5, 5, 5), seed=i)
           for i, name in enumerate(('plain', 'se', 'stepnet', 'srm'))]
CURVE = [dict(step=100 * i, tns=.9 - .02 * i, tns_median=.8, tns_q95=1. + i,
              nsi_stage1_mean=1., nsi_stage1_max=1.4, nsi_stage2_mean=.8,
              nsi_stage2_max=2., nonfinite=0) for i in range(1, 20)]
RUNS = [dict(name=f'method_{i}_seed{s}', tns=i + .1 * s, metric=90. - i)
        for i in range(17) for s in range(3)]


def small():
    """A network in which the stiffest sample is hardly stiff."""
    record = make_record((5, 5, 5))
    record.nsi.sub_(record.nsi.mean()).mul_(1e-5).add_(1e-4)
    return record


def constant():
    record = make_record((5, 5))
    record.step[:] = .2689
    return record


def attention():
    return [make_attention_record(i, layers=1) for i in (0, 500)]


#: The package's own study_figures is a function.
STUDIES = importlib.import_module('stepnet_mm.visualization.study_figures')
STUDY = made_study(17, 1)
METHODS = [f'm{i}' for i in range(17)]
FIGURES = dict(
    curve=lambda: curve_figure(CURVE),
    one_curve=lambda: curve_figure(CURVE[:1]),
    depth=lambda: depth_figure(SEVERAL),
    deep=lambda: depth_figure([make_record((26, 26, 26), samples=5)]),
    seeds=lambda: seeds_figure(
        [named(f'SE_seed{i}', seed=i) for i in range(9)]),
    survival=lambda: survival_figure(SEVERAL[:3]),
    proportion=lambda: proportion_figure(SEVERAL),
    small=lambda: proportion_figure([small(), small()]),
    many=lambda: proportion_figure(
        SEVERAL[:3], [.01 * i for i in range(30)], [.1 * i for i in range(40)]
    ),
    tenths=lambda: proportion_figure(
        [make_record((5, 5, 5))], np.linspace(0, .23, 6)),
    step=lambda: step_figure(SEVERAL[2]),
    constant=lambda: step_figure(constant()),
    few_gates=lambda: step_figure(make_record((1, 2))),
    tns=lambda: tns_figure(SEVERAL),
    properties=lambda: property_figure(SEVERAL, 0., .5),
    correlation=lambda: plot_correlation(RUNS, 'accuracy/top1', 'runs'),
    maps=lambda: attention_map_figure(attention()[0]),
    paths=lambda: attention_path_figure(attention()),
    range=lambda: attention_range_figure(attention()),
    **{name: lambda name=name: getattr(STUDIES, name)(STUDY, METHODS)
       for name in ('accuracy_figure', 'correlation_figure', 'curves_figure',
                    'nsi_figure', 'steps_figure')})


@pytest.mark.parametrize('size', style.SIZES)
@pytest.mark.parametrize('name', FIGURES)
def test_all_text_can_be_read(name, size):
    with style.use(size):
        assert_legible(FIGURES[name]())


def test_small_thresholds_have_a_common_power():
    axes = proportion_figure([small()]).axes[0]
    assert axes.get_ylabel().startswith('M2 · 10')
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert len(set(ticks)) == 6 and max(map(len, ticks)) <= 4


def test_the_first_points_of_a_curve_are_free():
    """The legend once lay over them and over the 95 % line."""
    upper, lower = curve_figure(CURVE).axes
    for axes in (upper, lower):
        axes.figure.canvas.draw()
        legend = axes.get_legend().get_window_extent()
        for line in axes.lines:
            places = axes.transData.transform(line.get_xydata())
            assert not any(legend.contains(*place) for place in places)


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
    assert ('one label', 'another') in overlapping(crowded())
    assert cut_off(crowded()) == ['far outside']
    assert hidden(crowded()) == ['stage 1']
