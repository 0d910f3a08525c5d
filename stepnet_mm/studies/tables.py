"""A study's records as Markdown tables, in the paper's form."""
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..recording.step_sizes import ABLATIONS, STEP_MOMENTS
from .records import StudyRecord
from .statistics import (
    MEASURES,
    Accuracy,
    Difference,
    Spread,
    accuracies,
    along_epochs,
    correlations,
    mean_difference,
    measured,
    paired_difference,
    runs_of_method,
    spread,
)
from .study import StudyMethod

NOT_RUN = 'not yet run'
#: Behind a difference with seeds that no machine ran of both methods.
ACROSS = ' †'
#: Measured, and no sample or run gave a finite number.
NOT_FINITE = '–'
SCOPES = dict(runs='over all runs', methods='over method means',
              within='within methods, over runs')


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells may hold anything."""
    lines = [head, ['---'] * len(head), *rows]
    return '\n'.join(f'| {" | ".join(map(_cell, row))} |' for row in lines)


def result_table(records: list[StudyRecord], methods: list[StudyMethod],
                 baselines: Sequence[str],
                 paper: Callable[[str], str | None]) -> str:
    """Accuracy, differences, stiffness and time of each method.

    Args:
        records (list[StudyRecord]): those made so far.
        methods (list[StudyMethod]): a row each.
        baselines (sequence[str]): methods to compare with, a column each;
            one more is of the methods' own, where those have rows and no
            column.
        paper (callable): a config's name -> the paper's figure.
    """
    titles, differences = _comparisons(records, methods, baselines)
    head = ['method', 'n', 'last epoch', 'best epoch', *titles,
            'mean TNS', 'mean NSI', 'processor time', 'paper']
    return table(head, [
        _result_row(records, method, differences[method.name], paper)
        for method in methods])


def short_table(records: list[StudyRecord], methods: list[StudyMethod],
                baselines: Sequence[str]) -> str:
    """The last epoch and the differences alone, as :func:`result_table`."""
    titles, differences = _comparisons(records, methods, baselines)
    return table(['method', 'n', 'last epoch', *titles], [
        [*_last_cells(records, method), *differences[method.name]]
        for method in methods])


def _comparisons(records: list[StudyRecord], methods: list[StudyMethod],
                 baselines: Sequence[str]
                 ) -> tuple[list[str], dict[str, list[str]]]:
    """The titles of the columns, and the cells of each method."""
    own = {m.name: m.baseline for m in methods
           if m.baseline in {o.name for o in methods} - {*baselines}}
    titles = [f'last, less `{other}`' for other in baselines]
    if own:
        titles.append('last, less its own baseline')

    def less(name, other):
        found = paired_difference(records, name, other)
        seeds = len({run.seed for run in runs_of_method(records, name)})
        return ''.join((
            difference_text(found, places(records)),
            f', {found.n} seeds' if 1 < found.n < seeds else '',
            ACROSS if found.across else ''))

    def cells(name):
        if not runs_of_method(records, name):
            return [''] * len(titles)
        found = [less(name, other) if other != name else ''
                 for other in baselines]
        if own:
            found.append(f'`{own[name]}`: {less(name, own[name])}'
                         if name in own else '')
        return found

    return titles, {method.name: cells(method.name) for method in methods}


def _last_cells(records: list[StudyRecord],
                method: StudyMethod) -> list[str]:
    """A method, its runs, and the last epoch or why there is none."""
    tried = any(r.method == method.name for r in records)
    own = runs_of_method(records, method.name)
    return [method.name, count_text(records, method),
            accuracy_text(records, method.name, 'last')
            if own or not tried else 'diverged']


def _result_row(records: list[StudyRecord], method: StudyMethod,
                differences: Sequence[str],
                paper: Callable[[str], str | None]) -> list[str]:
    own = runs_of_method(records, method.name)
    figure = (paper(method.paper) if method.paper else None) or 'none'
    cells = _last_cells(records, method)
    if not own:
        return [*cells, *[''] * (4 + len(differences)), figure]
    definition = next(iter(definitions_of(records)), '')
    return [
        *cells,
        accuracy_text(records, method.name, 'best'),
        *differences,
        *(stiffness_text(own, definition, measure)
          for measure in ('tns', 'nsi')),
        time_text(own),
        figure,
    ]


def stiffness_table(records: list[StudyRecord],
                    methods: list[StudyMethod]) -> str:
    """Each of :data:`MEASURES`, by method and definition of NSI."""
    names = definitions_of(records)
    return table(
        ['method', *(f'{text}, {name}' for name in names
                     for text in MEASURES.values())],
        [[method.name, *(stiffness_text(own, name, measure)
                         for name in names for measure in MEASURES)]
         for method in methods
         if (own := runs_of_method(records, method.name))])


def stage_table(records: list[StudyRecord],
                methods: list[StudyMethod]) -> str:
    """Mean Δt and NSI by stage, in the first definition, over runs."""
    stages = sorted({block['stage'] for r in records for block in blocks(r)})
    return table(
        ['method', *(f'{text}, stage {stage}' for text in ('Δt', 'NSI')
                     for stage in stages)],
        [[method.name, *(_stage_text(own, key, stage)
                         for key in ('step', 'nsi') for stage in stages)]
         for method in methods
         if (own := runs_of_method(records, method.name))])


def correlation_table(records: list[StudyRecord]) -> str:
    """Kendall's τ and Spearman's ρ with the last epoch, by scope."""
    rows = []
    for definition in definitions_of(records):
        for measure, text in MEASURES.items():
            found = correlations(records, definition, measure)
            rows.append([f'{text}, {definition}',
                         *(correlation_text(found[scope])
                           for scope in SCOPES)])
    return table(['', *SCOPES.values()], rows)


def kendall_table(records: list[StudyRecord]) -> str:
    """Kendall's τ of mean TNS alone, as :func:`correlation_table`."""
    names = definitions_of(records)
    found = [correlations(records, name, 'tns') for name in names]
    return table(['τ', *(f'`{name}`' for name in names)], [
        [text, *(_kendall_text(by_scope[scope]) for by_scope in found)]
        for scope, text in SCOPES.items()])


def epoch_table(records: list[StudyRecord]) -> str:
    """Kendall's τ over the epochs of a run, its mean over runs."""
    rows = []
    for measure, text in MEASURES.items():
        found = along_epochs(records, measure)
        rows.append([text, f'none: {found}', ''] if isinstance(found, str) else
                    [text, _estimate('τ', found), str(found['used'])])
    return table(['', 'mean over runs', 'runs'], rows)


def definitions_of(records: list[StudyRecord]) -> list[str]:
    """The definitions of NSI that were measured, in their order."""
    return list(dict.fromkeys(
        name for record in records for name in record.stiffness))


def blocks(record: StudyRecord) -> list[dict]:
    """The measured blocks, in the first definition; empty if diverged."""
    return next((m['blocks'] for m in record.stiffness.values()), [])


def count_text(records: list[StudyRecord], method: StudyMethod) -> str:
    """How many runs there are of those planned, and how many diverged."""
    n = len(runs_of_method(records, method.name))
    diverged = sum(r.diverged and r.method == method.name for r in records)
    text = _out_of(n, planned_runs(records, method))
    return f'{text}, {diverged} diverged' if diverged else text


def planned_runs(records: list[StudyRecord], method: StudyMethod) -> int:
    """Those that there are, and one of each seed that has none."""
    made = [r.seed for r in records if r.method == method.name]
    return len(made) + len({*method.seeds} - {*made})


def accuracy_text(records: list[StudyRecord], method: str,
                  key: Accuracy) -> str:
    """Mean ± standard deviation of a method's last or best epoch."""
    values = accuracies(records, method, key).values()
    return spread_text(spread(values), places(records))


def accuracy_line(records: list[StudyRecord], methods: Sequence[str]) -> str:
    """A table of one row: the last epoch of some methods, over their runs.

    Args:
        records (list[StudyRecord]): the runs.
        methods (sequence[str]): the columns, by name.

    Returns:
        str: three lines of Markdown.
    """
    counts = [len(accuracies(records, name, 'last')) for name in methods]
    values = [accuracy_text(records, name, 'last') + (
        f' ({n} runs)' if n > 1 else '') for name, n in zip(methods, counts)]
    return table(methods, [values])


def difference_text(found: Difference, digits: int) -> str:
    """A paired difference with its interval, or why it has none."""
    if found.mean is None:
        return 'no common seed'
    if found.low is None or found.high is None:
        return f'{signed(found.mean, digits)} (1 seed)'
    return _interval(found.mean, found.low, found.high, digits)


def ablation_table(records: list[StudyRecord],
                   methods: list[StudyMethod]) -> str:
    """The metric with Δt held fixed, and how much Δt varies.

    Args:
        records (list[StudyRecord]): some with ``steps``.
        methods (list[StudyMethod]): a row for each that has them.
    """
    own = {m.name: [r for r in runs_of_method(records, m.name) if r.steps]
           for m in methods}
    return table(
        ['method', 'n', 'as trained', 'fixed per channel',
         'change per channel', 'fixed per block', 'change per block',
         'mean Δt', 'SD over images', 'SD over positions',
         'SD over channels'],
        [_ablation_row(name, found, len(runs_of_method(records, name)),
                       places(records))
         for name, found in own.items() if found])


def _ablation_row(name: str, records: list[StudyRecord], runs: int,
                  digits: int) -> list[str]:
    def level(key, decimals=digits):
        found = having(key)
        return _lacking(found, records) or spread_text(
            spread(r.steps[key] for r in found), decimals)

    def change(key):
        found = having(key, 'trained')
        return _lacking(found, records) or difference_text(
            mean_difference((r.seed, r.steps[key] - r.steps['trained'])
                            for r in found), digits)

    def having(*keys):
        """The runs that have these numbers."""
        return [r for r in records
                if None not in [r.steps[key] for key in keys]]

    return [name, _out_of(len(records), runs), level('trained'),
            *(cell(key) for key in ABLATIONS[1:] for cell in (level, change)),
            *(level(key, 3) for key in STEP_MOMENTS)]


def _lacking(having: list[StudyRecord], records: list[StudyRecord]) -> str:
    """How many of the runs have a number; '' if all have."""
    if not having:
        return NOT_FINITE
    return '' if len(having) == len(records) else (
        f'in {_out_of(len(having), len(records))}')


def _out_of(n: int, whole: int) -> str:
    return str(n) if n == whole else f'{n} of {whole}'


def stiffness_text(own: list[StudyRecord], definition: str,
                   measure: str) -> str:
    """Mean ± standard deviation of one of :data:`MEASURES`."""
    values = [measured(record, definition, measure) for record in own]
    found = spread(value for value in values if value is not None)
    if found.n:
        return spread_text(found, 3)
    tried = any(definition in record.stiffness for record in own)
    return NOT_FINITE if tried else 'not measured'


def time_text(own: list[StudyRecord]) -> str:
    """Mean processor time of the runs that have one."""
    found = [r.cpu_seconds for r in own if r.cpu_seconds]
    return f'{np.mean(found) / 60:.1f} min' if found else 'not measured'


def spread_text(found: Spread, digits: int) -> str:
    """Mean ± standard deviation, or what is missing."""
    if found.mean is None:
        return NOT_RUN
    mean = f'{found.mean:.{digits}f}'
    if found.sd is None:
        return f'{mean} (1 run)'
    return f'{mean} ± {found.sd:.{digits}f}'


def correlation_text(found: dict[str, dict] | str) -> str:
    """τ and ρ with intervals and p, or why there are none."""
    if isinstance(found, str):
        return f'none: {found}'
    return '; '.join(_estimate(sign, found[name]) for sign, name in (
        ('τ', 'kendall'), ('ρ', 'spearman')))


def _kendall_text(found: dict[str, dict] | str) -> str:
    if isinstance(found, str):
        return f'none: {found}'
    return _rank_text(found['kendall'])


def signed(value: float, digits: int) -> str:
    """A number with its sign, a true minus."""
    return f'{value:+.{digits}f}'.replace('-', '−')


def places(records: list[StudyRecord]) -> int:
    """Decimal places of the metric: two of a percentage, four of an AP."""
    return 2 if any((r.best or 0) > 1 for r in records) else 4


def _estimate(sign: str, row: dict) -> str:
    p = '< 0.001' if row['p'] < .001 else f'{row["p"]:.2g}'
    return f'{sign} {_rank_text(row)}, p {p}'


def _rank_text(row: dict) -> str:
    return _interval(row['statistic'], row['low'], row['high'], 2)


def _interval(value: float, low: float, high: float, digits: int) -> str:
    value_text, *ends = (signed(x, digits) for x in (value, low, high))
    return f'{value_text} [{", ".join(ends)}]'


def _stage_text(own: list[StudyRecord], key: str, stage: int) -> str:
    values = [
        np.mean(found) for record in own if (found := [
            block[key] for block in blocks(record)
            if block['stage'] == stage and block[key] is not None])
    ]
    if values:
        return spread_text(spread(values), 3)
    tried = key == 'nsi' and any(map(blocks, own))
    return NOT_FINITE if tried else 'none'  # no block has a known Δt


def _cell(text: str) -> str:
    return ' '.join(str(text).replace('|', '\\|').split())
