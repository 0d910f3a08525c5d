"""The records of studies as tables, by pandas."""
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from intervals import (
    by_method,
    dunnett,
    equal_to_within,
    pooled_sd,
    rank_correlations,
    spread,
    welch,
)
from records import StudyRecord
from scipy import stats
from study_file import Study, StudyMethod

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
STEPS = (0., .15, .45, .6, .85, 1.25)


class Report:
    """Tables of the records of some studies.

    Attributes:
        subject (Study): what it is about, the last; the others stand beside.
        methods (dict[str, StudyMethod]): the rows, in this order.
        frame (pandas.DataFrame): a row for each run that did not diverge,
            AP in per cent.
    """

    def __init__(self, studies: list[Study], records: list[StudyRecord]):
        self.studies, self.subject = studies, studies[-1]
        self.metric = studies[0].metric
        self.methods: dict[str, StudyMethod] = {}
        for method in (m for study in studies for m in study.methods):
            self.methods.setdefault(method.name, method)
        named = dict.fromkeys(
            name for study in studies for name in study.baselines)
        self.baselines = [name for name in named or BASELINES
                          if name in self.methods]
        self.records = [r for r in records if r.method in self.methods]
        rows = [dict(row_of(r), pooled=self.methods[r.method].pooled)
                for r in self.records if not r.diverged]
        self.frame = pd.DataFrame(rows, columns=None if rows else [
            'method', 'seed', 'last', 'pooled', STEP]).astype(
                dict(method=pd.CategoricalDtype([*self.methods]), pooled=bool)
            ).sort_values(['method', 'seed'], kind='stable')
        # A stage that the first run lacks stands beside the others.
        places: dict[str, int] = {}
        self.frame = self.frame[sorted(self.frame, key=lambda name: (
            places.setdefault(name.partition(', stage')[0], len(places)),
            name))]
        #: The first baseline that has runs, or ''.
        self.control = next((name for name in self.baselines
                             if len(self.last(name))), '')
        self.runs = by_method(self.frame)
        self.pooled = by_method(self.frame[self.frame.pooled])
        self.definitions = list(dict.fromkeys(
            name for r in self.records for name in r.stiffness))
        #: Own baseline -> the methods that have it.
        self.families: dict[str, list[str]] = {}
        for name, method in self.methods.items():
            if method.baseline in self.methods:
                self.families.setdefault(method.baseline, []).append(name)

    def last(self, method: str, column: str = 'last') -> pd.Series:
        """The last epoch of a method's runs, or another column of them."""
        return self.frame.loc[self.frame.method == method, column].dropna()

    def differences(self, control: str, column: str = 'last',
                    family: Sequence[str] = ()) -> dict[str, str]:
        """Each method, or some, less a control, with its interval."""
        found = {name: welch(self.last(name, column),
                             self.last(control, column))
                 for name in family or self.methods if name != control}
        if len(family) == 1:
            return found
        pooled = {name: runs.dropna() for name, runs in self.pooled[column]
                  if runs.notna().any() and name in {*found, control}}
        if control in pooled and 1 < len(pooled) < sum(
                map(len, pooled.values())):
            base = pooled.pop(control)
            found.update(dunnett(pooled, base))
        return found

    def verdict(self, control: str, column: str = 'last') -> str:
        """Which methods of the subject are above a control, below, or
        neither; the last with the bound of equivalence, if their runs pool.
        """
        subject = {method.name for method in self.subject.methods}
        found = {name: text for name, text
                 in self.differences(control, column).items()
                 if name in subject and '[' in text}
        above = [name for name, text in found.items() if '[+' in text]
        below = [name for name, text in found.items() if ', −' in text]
        same = [name for name in found if name not in {*above, *below}]
        shown = {name: f'`{name}`' + ' †' * text.endswith('†')
                 for name, text in found.items()}
        for name in same:
            shown[name] += self._bound(name, control, column)
        return ' '.join(
            f'{side} `{control}`: {", ".join(map(shown.get, names))}.'
            for side, names in (
                ('Above', above), ('Below', below),
                ('No significant difference to', same)) if names)

    def _bound(self, name: str, control: str, column: str = 'last',
               family: Sequence[str] = ()) -> str:
        if not {name, control} <= {*self.pooled.groups}:
            return ''
        frame = self.frame[self.frame.pooled & self.frame.method.isin(
            family or [*self.methods])]
        bound = equal_to_within(self.last(name, column),
                                self.last(control, column),
                                *pooled_sd(by_method(frame)[column]))
        return f' ({bound:.2f})' if bound == bound else ''  # of one run each

    @property
    def networks(self) -> dict[str, dict[str, str]]:
        """Network -> step -> method, of NETWORK_plain and those that have it
        as their baseline; {} if there is one network only.
        """
        found = {base.removesuffix('_plain'): [base, *family]
                 for base, family in self.families.items()
                 if base.endswith('_plain') and len(family) > 1}
        return {network: {name.removeprefix(f'{network}_'): name
                          for name in names}
                for network, names in found.items() if len(found) > 1}

    def gains(self) -> str:
        """What the steps of each network gain over its plain one."""
        rows = {}
        for network, names in self.networks.items():
            plain, *family = names.values()
            found = self.differences(plain, family=family)
            rows[network] = {'plain': self.level(plain), **{
                f'{step}, gain': found[names[step]]
                for step in names if step != 'plain'}}
            if {'constant', 'stepnet'} <= {*names}:
                pair = names['stepnet'], names['constant']
                rows[network]['stepnet minus constant'] = welch(
                    *map(self.last, pair)) + self._bound(
                        *pair, family=[plain, *family])
        return markdown(pd.DataFrame(rows).T.rename_axis('network'))

    def results(self, controls: Sequence[str], methods: Iterable[str] = (),
                column: str = 'last', whole: bool = False) -> str:
        """The last epoch, or another column, and the differences to
        controls, a row for each method; ``whole`` with stiffness and the
        paper's figures.
        """
        head = 'last epoch' if column == 'last' else column
        table = pd.DataFrame({
            name: {'n': self.count(name, column),
                   head: self.level(name, column)}
            for name in list(methods) or self.methods}).T.rename_axis('method')
        for control in controls:
            if len(self.last(control, column)):
                table[f'minus `{control}`'] = pd.Series(
                    self.differences(control, column))
        if own := {name: f'`{base}`: {text}'
                   for base, family in self.families.items()
                   for name, text in self.differences(
                       base, column, family).items()
                   if text and base not in controls and name in table.index}:
            table['minus its own baseline'] = pd.Series(own)
        if whole:
            table = table.join(self.spreads(
                self.measures(self.definitions[:1])
            ).rename(columns=lambda name: name.partition(',')[0]))
            if papers := {name: paper_figure(method.paper) for name, method
                          in self.methods.items() if method.paper}:
                table['paper'] = pd.Series(papers)
        return markdown(table)

    @property
    def compares_stiffness(self) -> bool:
        """Whether all runs of more than four methods are there, with TNS."""
        frame = self.of_one_recipe()
        measured = frame.filter(like='mean TNS').notna().any(axis=1)
        return (frame.method[measured].nunique() > 4
                and not any(map(self.missing, self.methods))
                and not self.networks)

    @staticmethod
    def measures(definitions: Iterable[str]) -> list[str]:
        """The columns of stiffness by some definitions."""
        return [f'{text}, {definition}' for definition in definitions
                for text in MEASURES.values()]

    def spreads(self, columns: Iterable[str]) -> pd.DataFrame:
        """Mean ± SD of the columns that have numbers, by method."""
        shown = [name for name in columns
                 if name in self.frame and self.frame[name].notna().any()]
        runs = by_method(self.frame.dropna(how='all', subset=shown))
        return pd.DataFrame({name: runs[name].agg(
            spread, digits=3 if re.search('Δt|SD|TNS|NSI', name) else 2)
            for name in shown})

    def missing(self, name: str) -> int:
        """The number of a method's seeds without a record."""
        return len({*self.methods[name].seeds} - {
            r.seed for r in self.records if r.method == name})

    def count(self, name: str, column: str = 'last') -> str:
        """The number of runs, with those that are missing or diverged."""
        n, missing = len(self.last(name, column)), self.missing(name)
        diverged = sum(r.diverged and r.method == name for r in self.records)
        text = f'{n} of {n + missing + diverged}' if missing else f'{n}'
        return f'{text}, {diverged} diverged' if diverged else text

    def level(self, name: str, column: str = 'last') -> str:
        """Mean ± SD of the last epoch, or of another column."""
        if len(self.last(name, column)):
            return spread(self.last(name, column))
        return 'diverged' if 'diverged' in self.count(name) else 'not yet run'

    def by_step(self) -> str:
        """The last epoch by the mean Δt of methods, which are named."""
        means = by_method(self.frame[self.frame.pooled])[STEP].mean().dropna()
        rows = {}
        for _, group in means.groupby(pd.cut(means, STEPS), observed=True):
            last = [self.last(name) for name in group.index]
            p = stats.f_oneway(*last).pvalue if len(last) > 1 else None
            rows[f'{group.min():.2f} to {group.max():.2f}'] = {
                'methods': ', '.join(group.index),
                'runs': str(sum(map(len, last))),
                'last epoch': spread(pd.concat(last)),
                'do they differ?': f'p {p:.2f}' if p is not None else ''}
        return markdown(pd.DataFrame(rows).T.rename_axis('mean Δt'))

    def correlations(self) -> str:
        """Rank correlations of measures of stiffness with the last epoch."""
        return markdown(pd.DataFrame({
            name: rank_correlations(self.of_one_recipe(), name) for name
            in self.measures(self.definitions)}).T.rename_axis('measure'))

    def of_one_recipe(self) -> pd.DataFrame:
        """The runs that pool, if most methods do; else all."""
        pooled = self.frame[self.frame.pooled]
        return (pooled if 2 * self.pooled.ngroups > self.runs.ngroups
                else self.frame)


def row_of(record: StudyRecord) -> dict[str, Any]:
    """The columns of a run."""
    blocks = pd.DataFrame(
        next(iter(record.stiffness.values()), {}).get('blocks', []),
        columns=['stage', *BLOCKS], dtype=float)
    stages = blocks.groupby('stage').mean()
    return {
        'method': record.method, 'seed': record.seed,
        'last': percent(record.metric, record.last),
        STEP: mean_step(record, blocks['step']),
        **{text: percent('' if 'over' in key or key == 'mean' else
                         record.metric, record.steps.get(key))
           for key, text in ABLATION.items()},
        **{f'on {key}': value for key, value in record.robustness.items()},
        **{test_column(key): percent(key, value)
           for key, value in record.test.items()},
        **{f'{text}, {definition}': found[key]
           for definition, found in record.stiffness.items()
           for key, text in MEASURES.items()},
        **{f'{text}, stage {stage:.0f}': value
           for key, text in BLOCKS.items()
           for stage, value in stages[key].items()}}


def percent(metric: str, value: float | None) -> float:
    """A value of a table: mmdet's AP, a part of 1, in per cent.

    NaN where there is none: COCO's AP without objects is -1.
    """
    if value is None:
        return np.nan
    if not re.match('coco/|pascal_voc/', metric):
        return value
    return 100 * value if value >= 0 else np.nan


def test_column(metric: str) -> str:
    """The column of a metric on test data, COCO's AP by its usual name."""
    name = re.sub('bbox_mAP_?', 'AP', metric.rpartition('/')[2])
    return f'test {name.replace("_precision", ", AP")}'


def mean_step(record: StudyRecord, steps: pd.Series) -> float:
    """Mean Δt over the blocks of a run; a block without a step has 1.

    As the ablation measured it, if it did and all blocks have a step. NaN
    without steps: a plain network has 1, but not one with zero-initialised
    norms, which damp a residual too.
    """
    if steps.notna().all() and record.steps.get('mean') is not None:
        return record.steps['mean']
    words = record.method.split('_')
    if steps.notna().any() or 'plain' in words and 'init' not in words:
        return steps.fillna(1.).mean() if len(steps) else 1.
    return np.nan


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table; what is missing is empty."""
    return table.astype(object).where(table.notna(), '').to_markdown(
        disable_numparse=True)


def paper_figure(name: str) -> str:
    """The figure that a config's docstring gives as the paper's."""
    text = Path(config_path(name)).read_text()
    return re.search(r'^Paper: (.*)\.$', text, re.M)[1]
