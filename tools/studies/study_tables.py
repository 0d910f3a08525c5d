"""The records of studies as tables, by pandas and scipy."""
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from study_file import Study, StudyMethod
from study_records import StudyRecord

from stepnet_mm.config_path import config_path

#: Fields of a record -> columns: of a measurement of stiffness,
MEASURES = dict(tns='mean TNS', nsi='mean NSI')
#: of the step sizes held fixed,
ABLATION = dict(trained='as trained', per_channel='fixed per channel',
                per_block='fixed per block', mean='mean Δt',
                over_samples='SD over images',
                over_positions='SD over positions',
                over_channels='SD over channels')
#: and of blocks.
BLOCKS = dict(step='Δt', nsi='NSI')
#: The column of :func:`mean_step`.
STEP = 'mean Δt, all blocks'
#: Baselines of studies that name none.
BASELINES = ('plain', 'se', 'constant', 'none', 'all')
#: Between groups of methods by their mean Δt.
STEPS = (0., .15, .4, .75, 1.25)


class Report:
    """Tables of the records of some studies.

    Args:
        studies (list[Study]): whose methods are the rows, in this order.
        records (list[StudyRecord]): of the runs made so far.
        names (collection[str]): some of the methods. Default: all.
    """

    def __init__(self, studies: list[Study], records: list[StudyRecord],
                 names: Collection[str] = ()):
        self.methods: dict[str, StudyMethod] = {}
        self.studies = []
        for study in studies:
            chosen = [method for method in study.methods
                      if method.name in (names or [method.name])]
            self.studies += [study] * bool(chosen)
            for method in chosen:
                self.methods.setdefault(method.name, method)
        named = dict.fromkeys(name for study in self.studies
                              for name in study.baselines)
        self.baselines = [name for name in named or BASELINES
                          if name in self.methods]
        self.metric = studies[0].metric
        self.records = [r for r in records if r.method in self.methods]
        self.frame = frame_of(self.records, self.methods)
        self.runs = self.frame.groupby('method', observed=True)
        #: The last epoch of the methods that pool, a group for each.
        self.pooled = self.frame[self.frame.pooled].groupby(
            'method', observed=True)['last']
        self.definitions = list(dict.fromkeys(
            name for r in self.records for name in r.stiffness))
        best = max((r.best or 0 for r in self.records), default=0)
        #: Decimal places: two of a percentage, four of an AP.
        self.digits = 2 if best > 1 else 4

    def last(self, method: str) -> pd.Series:
        """The last epoch of a method's runs."""
        return self.frame.loc[self.frame.method == method, 'last']

    def differences(self, control: str) -> dict[str, str]:
        """Each method less a control, with its interval."""
        base = self.last(control)
        found = {name: welch(self.last(name), base, self.digits)
                 for name in self.methods if name != control}
        samples = {name: own for name, own in self.pooled if name in found}
        if (samples and len(samples) < self.pooled.ngroups
                and self.pooled.ngroups < self.pooled.count().sum()):
            with np.errstate(all='ignore'):
                ends = stats.dunnett(*samples.values(), control=base,
                                     rng=0).confidence_interval()
            for (name, own), *interval in zip(samples.items(), *ends):
                found[name] = difference(own, base, self.digits, interval)
        return found

    def pooled_sd(self) -> str:
        """The pooled standard deviation, and its degrees of freedom."""
        weights = self.pooled.count() - 1
        free = int(weights.sum())
        sd = np.sqrt((self.pooled.var() * weights).sum() / max(free, 1))
        return (f'{sd:.{self.digits}f}, {free} degrees of freedom' if free
                else 'none does')

    def results(self, controls: Sequence[str], methods: Iterable[str] = (),
                whole: bool = False) -> str:
        """The last epoch and the differences, a row for each method.

        Args:
            controls (sequence[str]): methods to compare with.
            methods (iterable[str]): the rows. Default: all.
            whole (bool): with stiffness, time and the paper's figures.
        """
        table = pd.DataFrame(index=pd.Index(
            list(methods) or list(self.methods), name='method'))
        table['n'] = [self.count(name) for name in table.index]
        table['last epoch'] = [self.level(name) for name in table.index]
        for control in controls:
            table[f'less `{control}`'] = pd.Series(self.differences(control))
        own = {name: f'`{base}`: ' + welch(
            self.last(name), self.last(base), self.digits)
               for name in table.index
               if (base := self.methods[name].baseline) in self.methods
               and base not in controls and len(self.last(name))}
        if own:
            table['less its own baseline'] = pd.Series(own)
        if whole:
            table = table.join(self.spreads(
                [f'{text}, {definition}' for definition
                 in self.definitions[:1] for text in MEASURES.values()]
            ).rename(columns=lambda name: name.partition(',')[0]))
            table['processor time'] = (
                self.runs['cpu_seconds'].mean() / 60).map(
                    '{:.1f} min'.format, na_action='ignore')
            if any(method.paper for method in self.methods.values()):
                table['paper'] = {
                    name: paper_figure(method.paper) if method.paper else ''
                    for name, method in self.methods.items()}
        return markdown(table)

    def spreads(self, columns: Iterable[str]) -> pd.DataFrame:
        """:func:`spread` of the columns that have numbers, by method."""
        shown = [name for name in columns
                 if name in self.frame and self.frame[name].notna().any()]
        runs = self.frame.dropna(how='all', subset=shown).groupby(
            'method', observed=True)
        return pd.DataFrame({name: runs[name].agg(
            spread, digits=3 if re.search('Δt|SD|TNS|NSI', name)
            else self.digits) for name in shown})

    def level(self, name: str) -> str:
        """Mean ± standard deviation of the last epoch."""
        if len(self.last(name)):
            return spread(self.last(name), self.digits)
        tried = any(r.method == name for r in self.records)
        return 'diverged' if tried else 'not yet run'

    def missing(self, name: str) -> int:
        """The number of a method's seeds without a record."""
        return len({*self.methods[name].seeds} - {
            r.seed for r in self.records if r.method == name})

    def count(self, name: str) -> str:
        """The number of runs, with those that are missing or diverged."""
        n, missing = len(self.last(name)), self.missing(name)
        diverged = sum(r.diverged and r.method == name for r in self.records)
        text = f'{n} of {n + missing + diverged}' if missing else f'{n}'
        return f'{text}, {diverged} diverged' if diverged else text

    def by_step(self) -> str:
        """The last epoch by the mean Δt of methods, which are named."""
        means = self.frame[self.frame.pooled].groupby(
            'method', observed=True)[STEP].mean().dropna()
        rows = {}
        for _, group in means.groupby(pd.cut(means, STEPS), observed=True):
            last = [self.last(name) for name in group.index]
            p = stats.f_oneway(*last).pvalue if len(last) > 1 else None
            rows[f'{group.min():.2f} to {group.max():.2f}'] = {
                'methods': ', '.join(group.index),
                'runs': str(sum(map(len, last))),
                'last epoch': spread(pd.concat(last), self.digits),
                'do they differ?': f'p {p:.2f}' if p is not None else ''}
        return markdown(pd.DataFrame(rows).T.rename_axis('mean Δt'))

    def taus(self) -> str:
        """Kendall's τ of measures of stiffness with the last epoch."""
        return markdown(pd.DataFrame({
            name: taus_of(self.frame, name)
            for name in (f'{text}, {definition}' for definition
                         in self.definitions for text in MEASURES.values())
        }).T.rename_axis('τ'))


def frame_of(records: list[StudyRecord],
             methods: Mapping[str, StudyMethod]) -> pd.DataFrame:
    """A row for each run that did not diverge, by method and seed."""
    rows = [row_of(record, methods[record.method].pooled)
            for record in records if not record.diverged]
    frame = pd.DataFrame(rows, columns=None if rows else [
        'method', 'seed', 'last', 'pooled', 'cpu_seconds', STEP])
    frame['method'] = pd.Categorical(frame.method, [*methods])
    frame['pooled'] = frame.pooled.astype(bool)
    return frame.sort_values(['method', 'seed'], kind='stable')


def row_of(record: StudyRecord, pooled: bool) -> dict[str, Any]:
    """The columns of a run."""
    blocks = pd.DataFrame(
        next(iter(record.stiffness.values()), {}).get('blocks', []),
        columns=['stage', *BLOCKS], dtype=float)
    stages = blocks.groupby('stage').mean()
    return {
        'method': record.method, 'seed': record.seed, 'last': record.last,
        'pooled': pooled, 'cpu_seconds': record.cpu_seconds or np.nan,
        STEP: mean_step(record, blocks['step']),
        **{text: record.steps.get(key) for key, text in ABLATION.items()},
        **{f'on {key}': value for key, value in record.robustness.items()},
        **{f'test {key}': value for key, value in record.test.items()},
        **{f'{text}, {definition}': found[key]
           for definition, found in record.stiffness.items()
           for key, text in MEASURES.items()},
        **{f'{text}, stage {stage:.0f}': value
           for key, text in BLOCKS.items()
           for stage, value in stages[key].items()}}


def mean_step(record: StudyRecord, steps: pd.Series) -> float:
    """Mean Δt over the blocks of a run; a block without a step has 1.

    Where all blocks have a step it is as it was measured with Δt held fixed,
    if it was. NaN without steps: a plain network has 1, but not one with
    zero-initialised norms, which damp a residual too.
    """
    if steps.notna().all() and record.steps.get('mean') is not None:
        return record.steps['mean']
    words = record.method.split('_')
    if steps.notna().any() or 'plain' in words and 'init' not in words:
        return steps.fillna(1.).mean() if len(steps) else 1.
    return np.nan


def spread(values: pd.Series, digits: int) -> str:
    """Mean ± standard deviation of the values that are numbers."""
    known = values.dropna()
    if not len(known):
        return '–'
    text = f'{known.mean():.{digits}f}'
    if len(known) > 1:
        text += f' ± {known.std():.{digits}f}'
    missing = len(known) < len(values)
    return f'{text} ({len(known)} of {len(values)})' if missing else text


def difference(sample: pd.Series, base: pd.Series, digits: int,
               interval: Sequence[float]) -> str:
    """A difference of means and its interval, if the runs differ at all."""
    value, low, high = (signed(x, digits)
                        for x in (sample.mean() - base.mean(), *interval))
    if not interval[1] > interval[0]:
        return f'{value} (equal runs)'
    return f'{value} [{low}, {high}]'


def welch(sample: pd.Series, base: pd.Series, digits: int) -> str:
    """A difference of means and its interval by Welch's t test."""
    if not len(sample) or not len(base):
        return ''
    if min(len(sample), len(base)) < 2:
        return f'{signed(sample.mean() - base.mean(), digits)} (one run)'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of runs that are equal
        found = stats.ttest_ind(sample, base, equal_var=False)
    return difference(sample, base, digits,
                      found.confidence_interval()) + ' †'


def taus_of(frame: pd.DataFrame, name: str) -> dict[str, str]:
    """Kendall's τ of a column with the last epoch, in three scopes."""
    own = frame[['method', name, 'last']].dropna()
    runs = own.groupby('method', observed=True)
    several = runs.filter(lambda group: len(group) > 1)
    centred = several[[name, 'last']] - several.groupby(
        'method', observed=True)[[name, 'last']].transform('mean')
    return {
        'over method means': tau(*runs.mean().T.to_numpy(), interval=True),
        'over all runs': tau(own[name], own['last']),
        # Rounded: equal ones stay equal.
        'within methods, over runs': tau(*centred.round(9).T.to_numpy()),
    }


def tau(x, y, interval: bool = False) -> str:
    """Kendall's τ-b, with its interval, or why there is none."""
    x, y = np.asarray(x), np.asarray(y)
    if len(x) < 3 or not np.ptp(x) or not np.ptp(y):
        return 'none: needs 3 that differ'

    def statistic(*pairs):
        return stats.kendalltau(*pairs).statistic

    value = signed(statistic(x, y), 2)
    if not interval:
        return value
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # drawn alike: no number
        drawn = stats.bootstrap(
            (x, y), statistic, paired=True, n_resamples=999,
            vectorized=False, method='percentile',
            rng=np.random.default_rng(0)).bootstrap_distribution
    # Rounded: half a digit goes one way, whatever its last bits are.
    low, high = (signed(end, 2) for end in np.nanpercentile(
        drawn, [2.5, 97.5]).round(9))
    return f'{value} [{low}, {high}]'


def signed(value: float, digits: int) -> str:
    """A number with its sign, a true minus."""
    return f'{value:+.{digits}f}'.replace('-', '−')


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; what is missing is empty."""
    return table.astype(object).where(table.notna(), '').to_markdown(
        disable_numparse=True)


def paper_figure(name: str) -> str:
    """The figure that a config's docstring gives as the paper's."""
    text = Path(config_path(name)).read_text()
    return re.search(r'^Paper: (.*)\.$', text, re.M)[1]
