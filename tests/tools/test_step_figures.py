import math

import numpy as np
import pytest
import torch
from made_records import make_record
from scipy import stats
from step_figures import pearson, spearman, step_figure

pytest.importorskip('matplotlib')


def signed(r):
    return f'{r:+.2f}'.replace('-', '−')


def test_a_constant_has_no_correlation():
    x = np.arange(5.)
    rounding = np.float32(.2689414) * (1 + 1e-7 * np.arange(5) % 2e-7)
    for constant in (np.ones(5), np.zeros(5), rounding):
        assert np.isnan(pearson(x, constant)) and np.isnan(
            spearman(constant, x))


def test_points_and_their_correlation():
    record = make_record((3, 5), bad=2)
    record.step[2] = math.nan
    figure = step_figure(record, ['layer2.4', 'layer1.1'])
    for axes, name, i in zip(figure.axes, ('layer2.4', 'layer1.1'), (6, 0)):
        nsi, step = record.nsi[3:, i], record.step[3:, i]
        assert axes.collections[0].get_offsets().tolist() == torch.stack(
            [nsi, step], 1).tolist()
        r, rho = stats.pearsonr(nsi, step)[0], stats.spearmanr(nsi, step)[0]
        assert axes.get_title() == (
            f'{name}\nPearson {signed(r)}, Spearman {signed(rho)}')
    upper = (figure.subfigs or [figure])[0].get_suptitle()
    assert '37 samples' in upper and 'left out: 3 of 40' in upper


def test_correlation_along_the_first_stage_with_enough_gates():
    gates = [False] * 3 + [True] * 2 + [False] + [True] * 5
    record = make_record((3, 3, 5), gates=gates)
    *panels, axes = step_figure(record).axes
    assert [panel.get_title().split('\n')[0] for panel in panels] == [
        'layer3.1', 'layer3.3', 'layer3.5']
    r = [stats.pearsonr(x, y)[0] for x, y in zip(
        record.nsi[:, 6:], record.step[:, 6:])]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == np.histogram(r, 40, (-1, 1))[0].tolist()
    assert axes.get_title().startswith('stage 3, 5 blocks: 40 samples')
    assert axes.get_title().endswith(signed(np.median(r)))


def test_few_gates_give_a_note():
    figure = step_figure(make_record((1, 2)))
    assert 'only 1 of its blocks has a gate' in figure.get_suptitle()
    assert len(figure.axes) == 1


def test_constant_steps_are_shown_by_the_spread_of_nsi():
    record = make_record((3, ))
    record.step[:] = .2689
    figure = step_figure(record)
    assert len(figure.axes) == 3 and 'constant' in figure.get_suptitle()
    for axes, nsi in zip(figure.axes, record.nsi.T):
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == np.histogram(nsi, 40)[0].tolist()
        assert 'Δt 0.2689, no correlation' in axes.get_title()
    record.step[5:] = make_record((3, )).step[5:]
    title = step_figure(record).axes[-1].get_title()
    assert '35 samples (5 with constant values left out)' in title


@pytest.mark.parametrize('changes, options, match', [
    (dict(gates=False), {}, 'SE: .*known gate'),
    (dict(gates=[True] * 4 + [False]), dict(blocks=['layer2.3']),
     r"known gate, \['layer1.1'.*got \['layer2.3'\]"),
    (dict(bad=40), {}, 'SE: .*got none in 40')])
def test_errors(changes, options, match):
    with pytest.raises(ValueError, match=match):
        step_figure(make_record(**changes), **options)
