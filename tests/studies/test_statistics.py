from dataclasses import replace

import numpy as np
import pytest
from made_runs import diverged_run, made_run, made_study
from scipy import stats

from stepnet_mm.analysis import correlate_within, rank_correlations
from stepnet_mm.studies.statistics import (
    accuracies,
    along_epochs,
    correlations,
    logged,
    mean_difference,
    paired_difference,
    runs_of_method,
    spread,
    trained_epochs,
)

NONE = 'needs 3 runs, has 0'


def as_runs(values):
    return [dict(name=f'{name}_seed{i}', tns=x, metric=y, source='',
                 definition=None)
            for name, own in values.items() for i, (x, y) in enumerate(own)]


def test_spread_by_hand():
    found = spread([1., 2., 6.])
    assert (found.n, found.mean) == (3, 3.)
    assert found.sd == pytest.approx(7**.5)  # (4 + 1 + 9) / 2
    assert spread([4.]) == spread(iter([4.]))
    assert (spread([4.]).mean, spread([4.]).sd) == (4., None)
    assert (spread([]).n, spread([]).mean, spread([]).sd) == (0, None, None)


def test_a_difference_is_paired_by_seed():
    records = [made_run('plain', s, v) for s, v in
               ((0, 50.), (1, 60.), (2, 55.), (7, 1.))]
    records += [made_run('se', s, v) for s, v in
                ((2, 58.), (0, 52.), (1, 61.), (9, 99.))]
    found = paired_difference(records, 'se', 'plain')
    assert (found.n, found.mean) == (3, 2.)  # of 2, 1, 3: sd 1
    assert found.high - found.mean == pytest.approx(4.302653 / 3**.5)
    assert found.mean - found.low == pytest.approx(4.302653 / 3**.5)
    wanted = stats.ttest_1samp([2., 1., 3.], 0).confidence_interval(.95)
    assert (found.low, found.high) == pytest.approx(tuple(wanted))
    back = paired_difference(records, 'plain', 'se')
    assert (back.mean, back.low, back.high) == pytest.approx(
        (-found.mean, -found.high, -found.low))
    best = paired_difference(records, 'se', 'plain', 'best', .8)
    assert best.mean == 2. and best.high < found.high


def test_a_difference_without_enough_seeds_has_no_interval():
    records = [made_run('plain', 0, 50.), made_run('se', 0, 53.),
               diverged_run('se', 1), made_run('plain', 1, 50.)]
    found = paired_difference(records, 'se', 'plain')
    assert (found.n, found.mean, found.low, found.high) == (1, 3., None, None)
    assert paired_difference(records, 'gone', 'plain').mean is None
    assert list(accuracies(records, 'se').values()) == [53.]
    assert runs_of_method(records, 'se') == [records[1]]  # none diverged


def test_a_difference_is_on_one_machine_where_there_is_one():
    def made(method, machine, *values):
        return [replace(made_run(method, seed, value), machine=machine)
                for seed, value in enumerate(values)]

    plain = [*made('plain', 'one', 50., 51., 52.),
             *made('plain', 'two', 60., 61.), *made('plain', 'three', 61.)]
    # Seeds 0 and 1 have a run of plain there, seed 2 only elsewhere.
    se = made('se', 'two', 63., 65., 56.)
    found = paired_difference([*plain, *se], 'se', 'plain')
    assert (found.n, found.mean) == (3, pytest.approx((3 + 4 + 4) / 3))
    assert found.across == 1
    back = paired_difference([*plain, *se], 'plain', 'se')
    assert (back.n, back.mean) == (3, pytest.approx(-found.mean))
    # No machine ran both: 57 is the mean of plain's three.
    other = [*made('eca', 'four', 1.), *made('eca', 'five', 5.)]
    assert [paired_difference([*plain, *other], *names).mean
            for names in (('plain', 'eca'), ('eca', 'plain'))] == [54., -54.]
    # Both seeds 0 of plain are one step better than their own constant.
    constant = [*made('constant', 'one', 49.), *made('constant', 'two', 59.)]
    found = paired_difference([*plain, *constant], 'plain', 'constant')
    assert (found.n, found.mean, found.low) == (1, 1., None)
    assert found.across == 0
    assert len(accuracies(plain, 'plain')) == 6


def test_two_pairs_of_a_seed_count_as_one():
    found = mean_difference([(0, 1.), (1, 4.), (0, 3.), (2, 9.)])
    assert found == mean_difference([(0, 2.), (1, 4.), (2, 9.)])
    assert (found.n, found.mean) == (3, 5.)
    wanted = stats.ttest_1samp([2., 4., 9.], 0).confidence_interval(.95)
    assert (found.low, found.high) == pytest.approx(tuple(wanted))


def test_rank_correlations_are_those_of_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (2, 15)).astype(float)  # with ties
    found = rank_correlations(x, y)
    assert found['kendall'] == pytest.approx(stats.kendalltau(x, y)[0])
    assert found['spearman'] == pytest.approx(stats.spearmanr(x, y)[0])


def test_between_methods_and_within_them_may_be_of_opposite_sign():
    # Methods lie on a falling line, the seeds of each on a rising one.
    records = [made_run(f'm{i}', s, 90. - 10 * i + s, tns=1. + i + .1 * s)
               for i in range(5) for s in range(3)]
    found = correlations(records, 'residual', 'tns')
    assert found['methods']['kendall']['statistic'] == pytest.approx(-1)
    assert found['methods']['kendall']['p'] == pytest.approx(2 / 120)
    assert found['within']['kendall']['statistic'] == pytest.approx(1)
    # Any other order within a method is worse: 2 of (3!)^5 are as far.
    assert found['within']['kendall']['p'] < .01
    runs = found['runs']['kendall']
    assert runs['statistic'] == pytest.approx(stats.kendalltau(
        [r.stiffness['residual']['tns'] for r in records],
        [r.last for r in records])[0])
    assert runs['low'] <= runs['statistic'] <= runs['high']


def test_within_methods_by_hand():
    """Centred: x -1 1 | -2 2 | -3 3, y 1 -1 | -2 2 | -3 3."""
    runs = as_runs(dict(a=[(1, 9), (3, 7)], b=[(0, 0), (4, 4)],
                        c=[(0, 1), (6, 7)], alone=[(100, 100)]))
    found = correlate_within(runs, 400)
    x, y = [-1, 1, -2, 2, -3, 3], [1, -1, -2, 2, -3, 3]
    for name, function in (('kendall', stats.kendalltau),
                           ('spearman', stats.spearmanr)):
        row = found[name]
        assert row['statistic'] == pytest.approx(function(x, y)[0])
        assert -1 <= row['low'] <= row['statistic'] <= row['high'] <= 1
    # Of the 8 orders within methods, those with both larger methods in one
    # direction are as far or further: 4.
    assert found['kendall']['p'] == pytest.approx(.5, abs=.08)


def test_p_is_never_below_one_of_the_permutations():
    order = [(x, x) for x in range(4)]
    runs = as_runs({name: order for name in 'abcdef'})
    assert correlate_within(runs, 20)['kendall']['p'] == 1 / 21


@pytest.mark.parametrize('records, wanted', [
    ([], dict(runs='needs 3 runs, has 0', methods='needs 3 methods, has 0',
              within='needs 3 methods with several seeds, has 0')),
    ([made_run('a', 0, 1.), made_run('b', 0, 2.), diverged_run('c')],
     dict(runs='needs 3 runs, has 2', methods='needs 3 methods, has 2')),
    ([made_run('a', s, 5.) for s in range(3)], dict(
        runs='equal values', methods='needs 3 methods, has 1')),
    ([made_run(m, s, v + s, tns=1e-12 * (v + s))
      for m, v in (('a', 1.), ('b', 2.), ('c', 3.)) for s in range(2)],
     dict(within='equal values')),
])
def test_why_there_is_no_correlation(records, wanted):
    found = correlations(records, 'residual', 'tns')
    assert {scope: found[scope] for scope in wanted} == wanted


def test_along_epochs():
    found = along_epochs(made_study(), 'tns')
    # TNS falls and the accuracy rises in each of the 15 runs.
    assert (found['statistic'], found['low'], found['high']) == (-1, -1, -1)
    assert found['p'] == pytest.approx(2 / 2**15) and found['used'] == 15
    assert along_epochs(made_study(), 'nsi') == NONE  # never changes
    assert along_epochs([diverged_run('a')], 'tns') == NONE


def test_along_epochs_has_the_interval_of_a_mean():
    records = made_study(2, 2)
    for record in records[:2]:  # the first epoch moves to the end
        record.epochs[0]['stiffness_eval/tns'] = 0.
    found = along_epochs(records, 'tns')
    taus = [0., 0., -1., -1.]
    assert found['statistic'] == -.5
    assert found['low'] == -1  # of -1.42, which no tau reaches
    assert found['high'] == pytest.approx(
        stats.ttest_1samp(taus, 0).confidence_interval(.95).high)
    assert found['p'] == .5  # of two runs with a sign


def test_what_was_logged():
    record = made_run(tns=3.)
    assert logged(record, 'tns') == {i: 3 / i for i in range(1, 5)}
    assert logged(record, 'nsi') == dict.fromkeys(range(1, 5), 4.5)
    record.epochs[1]['stiffness_eval/nsi/backbone.layer1.1'] = None
    assert set(logged(record, 'nsi')) == {1, 3, 4}


def test_what_a_hook_logged_between_is_no_epoch():
    record, plain = made_run(step=.3), made_run(step=.3)
    record.epochs += [{'epoch': i, 'stiffness/tns': 9.} for i in (50, 100)]
    assert trained_epochs(record) == trained_epochs(plain) == 4
    for measure in ('tns', 'nsi'):
        assert logged(record, measure) == logged(plain, measure)
    assert along_epochs([record] * 3, 'tns') == along_epochs(
        [plain] * 3, 'tns')
    assert trained_epochs(diverged_run('a')) == 0
