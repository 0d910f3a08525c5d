import math

import numpy as np
import pytest
import torch
from made_records import make_record
from scipy import stats
from step_figures import has_steps, pearson, spearman, step_figure

pytest.importorskip('matplotlib')


def signed(r):
    return f'{r:+.2f}'.replace('-', '−')


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def test_correlations_are_scipys():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 4, 30)).round(1)  # ties
    found = pearson(x, y)
    for i in range(4):
        assert found[i] == pytest.approx(stats.pearsonr(x[i], y[i])[0])
        assert spearman(x[i], y[i]) == pytest.approx(
            stats.spearmanr(x[i], y[i])[0])


def test_a_constant_has_no_correlation():
    x = np.arange(5.)
    rounding = np.float32(.2689414) * (1 + 1e-7 * np.arange(5) % 2e-7)
    for constant in (np.ones(5), np.zeros(5), rounding):
        assert np.isnan(pearson(x, constant)) and np.isnan(
            spearman(constant, x))


def test_points_and_their_correlation():
    record = make_record((3, 5), bad=2)
    figure = step_figure(record, ['layer2.4', 'layer1.1'])
    for axes, name, i in zip(figure.axes, ('layer2.4', 'layer1.1'), (6, 0)):
        nsi, step = record.nsi[2:, i], record.step[2:, i]
        assert axes.collections[0].get_offsets().tolist() == torch.stack(
            [nsi, step], 1).tolist()
        r, rho = stats.pearsonr(nsi, step)[0], stats.spearmanr(nsi, step)[0]
        assert axes.get_title() == (
            f'{name}\nPearson {signed(r)}, Spearman {signed(rho)}')
    upper = (figure.subfigs or [figure])[0].get_suptitle()
    assert '38 samples' in upper and 'left out: 2 of 40' in upper


def test_distribution_over_trajectories():
    record = make_record((3, 5), bad=2)
    for stage, columns in ((None, slice(3)), (2, slice(3, 8))):
        axes = step_figure(record, stage=stage).axes[-1]
        r = [stats.pearsonr(x, y)[0] for x, y in zip(
            record.nsi[2:, columns], record.step[2:, columns])]
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == np.histogram(r, 40, (-1, 1))[0].tolist()
        assert sum(heights) == 38
        count = columns.stop - (columns.start or 0)
        assert axes.get_title().startswith(
            f'stage {stage or 1}, {count} blocks: 38 samples')
        assert axes.get_title().endswith(signed(np.median(r)))


def test_three_blocks_of_the_first_stage_with_enough_gates():
    gates = [False] * 3 + [True] * 2 + [False] + [True] * 5
    record = make_record((3, 3, 5), gates=gates)
    names = [title.split('\n')[0] for title in titles(step_figure(record))]
    assert names[:3] == ['layer3.1', 'layer3.3', 'layer3.5']
    assert names[3].startswith('stage 3, 5 blocks')


def test_few_gates_give_a_note():
    figure = step_figure(make_record((1, 2)))
    assert titles(figure)[0].startswith('layer1.1\nPearson')
    assert 'only 1 of its blocks has a gate' in figure.get_suptitle()
    assert len(figure.axes) == 1


def test_constant_steps_give_a_note():
    record = make_record((3, ))
    record.step[:] = .2689
    figure = step_figure(record)
    assert all('no correlation' in title for title in titles(figure))
    assert 'constant' in figure.get_suptitle()
    record.step[5:] = make_record((3, )).step[5:]
    title = titles(step_figure(record))[-1]
    assert '35 samples (5 with constant values left out)' in title


def test_constant_steps_leave_no_panel_empty():
    record = make_record((3, ))
    record.step[:] = .2689
    figure = step_figure(record)
    assert len(figure.axes) == 3 and not figure.subfigs
    for axes, nsi in zip(figure.axes, record.nsi.T):
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == np.histogram(nsi, 40)[0].tolist()
        assert 'Δt 0.2689' in axes.get_title()


def test_a_sample_without_a_step_size_is_left_out():
    record = make_record((3, ))
    record.step[4, 1] = math.nan
    axes = step_figure(record).axes[0]
    assert len(axes.collections[0].get_offsets()) == 39


def test_whether_there_is_something_to_draw():
    assert has_steps(make_record(gates=[False] * 4 + [True]))
    assert not has_steps(make_record(gates=False))


@pytest.mark.parametrize('changes, options, match', [
    (dict(gates=False), {}, 'SE: .*known gate'),
    (dict(gates=[True] * 4 + [False]), dict(blocks=['layer2.3']),
     r"known gate, \['layer1.1'.*got \['layer2.3'\]"),
    ({}, dict(blocks=[]), 'blocks: '), ({}, dict(stage=1), 'stage: .*got 1'),
    (dict(bad=40), {}, 'SE: .*got none in 40')])
def test_errors(changes, options, match):
    with pytest.raises(ValueError, match=match):
        step_figure(make_record(**changes), **options)
