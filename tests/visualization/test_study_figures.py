import importlib

import pytest
from made_runs import diverged_run, made_run

from stepnet_mm.visualization.study_figures import (
    accuracy_figure,
    correlation_figure,
    curves_figure,
    nsi_figure,
    steps_figure,
    study_figures,
)

pytest.importorskip('matplotlib')
STUDIES = importlib.import_module('stepnet_mm.visualization.study_figures')

#: Two methods with two seeds each.
FOUR = [made_run(m, s, last + s, tns + .1 * s, step)
        for m, last, tns, step in (('plain', 50., 2., None),
                                   ('se', 60., 1., .5)) for s in (0, 1)]


def data(line):
    return line.get_xydata().tolist()


def legend(figure):
    return [text.get_text() for own in figure.legends
            for text in own.get_texts()]


def test_accuracy_by_method_sorted_by_mean():
    axes, = accuracy_figure(FOUR, ['se', 'plain']).axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ['plain', 'se']
    dots, mean, *_ = axes.lines
    assert data(dots) == [[50, 0], [51, 0]] and data(mean) == [[50.5, 0]]
    dashed = [line for line in axes.lines if line.get_linestyle() == '--']
    assert [line.get_xdata()[0] for line in dashed] == [50.5]
    assert axes.get_xlabel() == 'accuracy/top1'


def test_who_is_far_below_all_others_is_a_number_in_the_picture():
    records = [made_run(f'm{last}', 0, last) for last in (10., 60., 61., 66.)]
    names = [record.method for record in records]
    axes, = accuracy_figure(records, names).axes
    assert not axes.texts  # three others are too few
    axes, = accuracy_figure([*records, made_run('m64', 0, 64.),
                             made_run('m10.0', 1, 12.)], [*names, 'm64']).axes
    text, = axes.texts
    assert text.get_text() == ' ← 10.00, 12.00' and axes.get_xlim()[0] > 50
    assert text.get_position()[1] == 0
    assert axes.get_yticklabels()[0].get_text() == 'm10.0'


def test_fig_7_has_a_panel_for_each_definition():
    figure = correlation_figure(FOUR, ['plain', 'se'])
    titles = [axes.get_title().splitlines() for axes in figure.axes]
    # Of six pairs four are discordant: (4 - 2) / 6.
    assert titles[0] == ['residual', 'τ −0.33, ρ −0.60 over runs']
    assert [title[0] for title in titles] == ['residual', 'output', 'update']
    assert data(figure.axes[1].lines[1]) == [[.4, 60], [.4 * 1.1, 61]]
    assert legend(figure) == ['plain', 'se']
    lone = correlation_figure(FOUR[:2], ['plain'])
    assert 'no correlation: needs 3 runs' in lone.axes[0].get_title()


def test_curves_are_means_over_seeds(monkeypatch):
    monkeypatch.setattr(STUDIES, 'MANY', 2)
    figure = curves_figure([*FOUR, made_run('eca', 0, 70.)],
                           ['plain', 'eca', 'se'])
    accuracy, tns = figure.axes
    assert data(accuracy.lines[0]) == [[1, 67], [2, 68], [3, 69], [4, 70]]
    assert data(accuracy.lines[1])[0] == [1, 47.5]
    assert data(tns.lines[1]) == [[i, pytest.approx(2.05 / i)]
                                  for i in range(1, 5)]
    assert legend(figure) == ['others', 'plain', 'se']
    monkeypatch.setattr(STUDIES, 'MANY', 0)
    alone = curves_figure(FOUR[2:], ['se'])  # in its own colour
    assert alone.axes[0].lines[0].get_color() == (
        accuracy.lines[2].get_color())
    monkeypatch.setattr(STUDIES, 'MANY', 3)
    assert legend(curves_figure(FOUR, ['plain', 'eca', 'se'])) == [
        'plain', 'eca', 'se']


def test_nsi_by_block():
    residual, output, _ = nsi_figure(FOUR, ['plain', 'se']).axes
    assert data(residual.lines[0]) == [
        [i, pytest.approx(2.05 * i)] for i in range(1, 5)]
    assert data(output.lines[0])[0] == [1, pytest.approx(.82)]
    assert data(residual.lines[2])[0][0] == 2.5  # between the stages


def test_steps_by_block_and_over_epochs():
    upper, one, two = steps_figure(FOUR, ['plain', 'se']).axes
    assert data(upper.lines[0]) == [[1, .5], [2, .5], [3, .25], [4, .25]]
    assert data(one.lines[0]) == [[i, .5 * i] for i in range(1, 5)]
    assert data(two.lines[0]) == [[i, .25 * i] for i in range(1, 5)]
    assert legend(upper.figure) == ['se']


def test_records_before_steps_were_logged_give_one_panel():
    record = made_run('se', step=.3)
    record.epochs = [{k: v for k, v in epoch.items() if 'step/' not in k}
                     for epoch in record.epochs]
    assert len(steps_figure([record], ['se']).axes) == 1


@pytest.mark.parametrize('records, names', [
    ([diverged_run('a')], []),
    ([made_run('a', stiffness={})], ['accuracy', 'curves']),
    ([made_run('a'), diverged_run('a', 1), made_run('not asked for', step=.5)],
     ['accuracy', 'fig7', 'nsi', 'curves']),
    (FOUR, ['accuracy', 'fig7', 'nsi', 'curves', 'steps'])])
def test_what_the_records_give(records, names):
    found = study_figures(records, ['a', 'plain', 'se', 'gone'])
    assert list(found) == names
