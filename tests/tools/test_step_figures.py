import math

import numpy as np
import pytest
import torch
from made_records import make_record
from scipy import stats
from step_figures import pearson, step_figure

pytest.importorskip('matplotlib')


def signed(r):
    return f'{r:+.2f}'.replace('-', '−')


def test_a_constant_has_no_correlation():
    x = np.arange(5.)
    rounding = np.float32(.2689414) * (1 + 1e-7 * np.arange(5) % 2e-7)
    for constant in (np.ones(5), np.zeros(5), rounding):
        assert np.isnan(pearson(x, constant))


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
    title = figure.get_suptitle()
    assert '37 samples' in title and 'left out: 3 of 40' in title


def test_correlation_along_the_first_stage_with_enough_gates():
    gates = [False] * 3 + [True] * 2 + [False] + [True] * 5
    record = make_record((3, 3, 5), gates=gates)
    record.step[:2, 6:] = .2689
    *panels, axes = step_figure(record).axes
    assert [panel.get_title().split('\n')[0] for panel in panels] == [
        'layer3.1', 'layer3.3', 'layer3.5']
    r = [stats.pearsonr(x, y)[0] for x, y in zip(
        record.nsi[2:, 6:], record.step[2:, 6:])]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == np.histogram(r, 40, (-1, 1))[0].tolist()
    title = axes.get_title()
    assert title.startswith('stage 3, 5 blocks: 38 samples (2 with constant')
    assert title.endswith(signed(np.median(r)))


def test_without_a_correlation_along_depth():
    assert len(step_figure(make_record((1, 2))).axes) == 1
    record = make_record((3, ))
    record.step[:] = .2689
    assert [axes.get_title().split('\n')[1]
            for axes in step_figure(record).axes] == [
        'no correlation: constant values'] * 3


@pytest.mark.parametrize('changes, options, match', [
    (dict(gates=False), {}, 'SE: .*known gate'),
    (dict(gates=[True] * 4 + [False]), dict(blocks=['layer2.3']),
     r"known gate, \['layer1.1'.*got \['layer2.3'\]"),
    (dict(bad=40), {}, 'SE: .*got none in 40')])
def test_errors(changes, options, match):
    with pytest.raises(ValueError, match=match):
        step_figure(make_record(**changes), **options)
