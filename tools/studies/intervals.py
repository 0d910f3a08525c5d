"""Intervals of differences, and rank correlations, by scipy."""
import warnings
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy import optimize, stats


def by_method(frame: pd.DataFrame):
    """A group for each method that has runs."""
    return frame.groupby('method', observed=True)


def spread(values: pd.Series, digits: int = 2) -> str:
    """Mean ± standard deviation of the values that are numbers."""
    known = values.dropna()
    if not len(known):
        return '–'
    text = f'{known.mean():.{digits}f}'
    if len(known) > 1:
        text += f' ± {known.std():.{digits}f}'
    if len(known) < len(values):
        text += f' ({len(known)} of {len(values)})'
    return text


def pooled_sd(groups) -> tuple[float, int]:
    """The pooled standard deviation, and its degrees of freedom."""
    weights = (groups.count() - 1).clip(lower=0)
    free = int(weights.sum())
    return np.sqrt((groups.var() * weights).sum() / max(free, 1)), free


def equal_to_within(sample: pd.Series, base: pd.Series, sd: float,
                    free: int) -> float:
    """The bound to which means are equal: two one-sided t tests at 5 %.

    ``sd`` is a standard deviation with ``free`` degrees of freedom.
    """
    error = sd * np.sqrt(1 / len(sample) + 1 / len(base))
    return (abs(sample.mean() - base.mean()) + stats.t.ppf(.95, free) * error)


def dunnett(samples: Mapping[str, pd.Series],
            base: pd.Series) -> dict[str, str]:
    """Differences to a control by Dunnett's test, of all samples at once.

    scipy's own intervals are lost in few runs: its minimiser ends early.
    """
    sizes = np.array([len(sample) for sample in samples.values()])
    share = np.sqrt(sizes / (sizes + len(base)))
    related = np.outer(share, share)
    np.fill_diagonal(related, 1)
    groups = pd.concat([*samples.values(), base], keys=range(len(sizes) + 1))
    sd, free = pooled_sd(groups.groupby(level=0))

    def excess(limit: float) -> float:
        ends = np.full(len(sizes), limit)
        return stats.multivariate_t.cdf(
            ends, shape=related, df=free, lower_limit=-ends,
            random_state=0) - .95

    limit = optimize.brentq(excess, 0, 1000)
    widths = limit * sd * np.sqrt(1 / sizes + 1 / len(base))
    values = [sample.mean() - base.mean() for sample in samples.values()]
    return {name: _difference(value, value - width, value + width)
            for name, value, width in zip(samples, values, widths)}


def welch(sample: pd.Series, base: pd.Series) -> str:
    """A difference of means and its interval by Welch's t test."""
    if not len(sample) or not len(base):
        return ''
    value = sample.mean() - base.mean()
    if min(len(sample), len(base)) < 2:
        return f'{_signed(value)} (one run)'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of runs that are equal
        found = stats.ttest_ind(sample, base, equal_var=False)
    return _difference(value, *found.confidence_interval()) + ' †'


def _difference(value: float, low: float, high: float) -> str:
    """A difference of means and its interval, if the runs differ at all."""
    if not high > low:
        return f'{_signed(value)} (equal runs)'
    return f'{_signed(value)} [{_signed(low)}, {_signed(high)}]'


def rank_correlations(frame: pd.DataFrame, name: str) -> dict[str, str]:
    """Kendall's τ-b and Spearman's ρ of a column with the last epoch."""
    own = frame[['method', name, 'last']].dropna()
    several = by_method(own).filter(lambda group: len(group) > 1)
    centred = several[[name, 'last']] - by_method(several).transform('mean')
    means, tau = by_method(own).mean(), stats.kendalltau
    return {
        'τ over method means': _correlation(means, tau, interval=True),
        'ρ over method means': _correlation(means, stats.spearmanr),
        'τ over all runs': _correlation(own[[name, 'last']], tau),
        # Rounded: equal ones stay equal.
        'τ within methods, over runs': _correlation(centred.round(9), tau),
    }


def _correlation(pairs: pd.DataFrame, test: Callable,
                 interval: bool = False) -> str:
    """That of two columns, or why there is none."""
    if len(pairs) < 3 or (pairs.nunique() < 2).any():
        return 'none: needs 3 that differ'

    def statistic(*columns):
        return test(*columns).statistic

    columns = pairs.T.to_numpy()
    value = _signed(statistic(*columns))
    if not interval:
        return value
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # drawn alike: no number
        drawn = stats.bootstrap(
            columns, statistic, paired=True, n_resamples=999,
            vectorized=False, method='percentile',
            rng=np.random.default_rng(0)).bootstrap_distribution
    # Rounded: half a digit goes one way, whatever its last bits are.
    low, high = (_signed(end) for end in np.nanpercentile(
        drawn, [2.5, 97.5]).round(9))
    return f'{value} [{low}, {high}]'


def _signed(value: float) -> str:
    """A number with its sign, a true minus."""
    return f'{value:+.2f}'.replace('-', '−')
