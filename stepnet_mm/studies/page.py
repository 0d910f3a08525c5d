"""A page on a study: its setting, tables, figures and limits."""
import ast
from collections.abc import Callable, Iterable, Mapping
from textwrap import fill
from typing import Any

from .first_config import FirstConfig, value_at
from .limits import limits
from .records import StudyRecord
from .statistics import trained_epochs
from .study import Study, StudyMethod, baselines_of, methods_of
from .tables import (
    ablation_table,
    correlation_table,
    definitions_of,
    epoch_table,
    planned_runs,
    result_table,
    stage_table,
    stiffness_table,
)

#: Training images of the datasets whose names end in these.
IMAGES = dict(CIFAR10=50_000, CIFAR100=50_000)
WRITTEN = ('Written by `tools/studies/report.py` from the records of the '
           'runs; edits are lost.')
ABLATION = '''The last checkpoint, evaluated once more on the whole validation
split ({metric}), with Δt at its mean over images and positions: one number for
each channel, or one for each block. Changes are from the same network as
trained, with a 95 % t interval over seeds; "in 1 of 3" says that the other
runs have no such number. Δt and its standard deviations (SD) are means
over modules. All other weights stay as they were trained: a drop is what these
weights need, not what adaptation is worth in training.'''
CORRELATIONS = '''τ is Kendall's τ-b, ρ is Spearman's, of a measure of
stiffness and {metric} after the last epoch, each with its 95 % interval, from
{runs} runs of {methods} methods. Over runs and over method means p comes from
the usual test and the interval from a bootstrap over them. The runs of one
method are not independent, so over all runs p is too small and the interval
too narrow. Within methods both numbers are taken relative to the method's
mean and pooled; p comes from 2,000 permutations within methods, the interval
from a bootstrap over methods.'''
EPOCHS = '''Within runs, over epochs: τ of what TNSMetric logged after each
epoch and {metric} after it, over the epochs of a run; its mean over runs with
a t interval over runs, and p of a sign test. Both numbers change while a
network trains, whether or not one causes the other.'''


def study_page(studies: list[Study], records: list[StudyRecord],
               paper: Callable[[str], str | None], commands: Iterable[str],
               figures: Mapping[str, str], title: str = '') -> str:
    """The Markdown page; the same records give the same page.

    Args:
        studies (list[Study]): whose methods are the rows, in this order.
        records (list[StudyRecord]): of the runs made so far.
        paper (callable): a config's name -> the paper's figure.
        commands (iterable[str]): that made the records and this page.
        figures (mapping): caption -> link, relative to the page.
        title (str): its heading. Default: the names of the studies.
    """
    methods, first = methods_of(studies), FirstConfig.read(studies)
    listed = [r for r in records if r.method in {m.name for m in methods}]
    parts = [
        *_heading(studies, title),
        *_setting(studies, listed, first),
        '\n'.join(['```bash', *commands, '```']),
        '## Results', _result_note(studies[0].metric, listed, methods),
        result_table(listed, methods, baselines_of(studies), paper),
        *_ablation(listed, methods),
        *(_stiffness(listed, methods) if definitions_of(listed) else ()),
        *(['## Figures'] if figures else []),
        *(f'![{caption}]({link})\n\n{caption}.'
          for caption, link in figures.items()),
        '## What cannot be concluded',
        _list(limits(studies, records, first)),
    ]
    return '\n\n'.join(parts) + '\n'


def shared_options(methods: list[StudyMethod]) -> dict[str, Any]:
    """What every method changes in its config; the first one's values."""
    return {
        key: value for key, value in methods[0].options.items()
        if all(key in method.options for method in methods)
    }


def images_per_epoch(dataset: Mapping) -> int | None:
    """How many images an epoch trains on; None if it is not known."""
    indices = dataset.get('indices')
    if indices is not None:
        return indices if isinstance(indices, int) else len(indices)
    return next((count for name, count in IMAGES.items()
                 if dataset['type'].endswith(name)), None)


def _heading(studies: list[Study], title: str) -> list[str]:
    names = ', '.join(study.name for study in studies)
    text = [f'# {title or names}', WRITTEN]
    for study in studies:
        about = ast.get_docstring(ast.parse(study.path.read_text()))
        text += [about] if about else []
    return text


def _setting(studies: list[Study], records: list[StudyRecord],
             first: FirstConfig) -> list[str]:
    changes = _changes(methods_of(studies), first)
    lines = [_training(first), f'Changed in every config: {changes}.']
    if not _unchanged(studies, records):
        lines.insert(0, 'The records are of other settings than the study '
                     'file has now, which the next two points are of.')
    if records:
        lines = [
            f'Data: {_distinct(r.dataset_type for r in records)}.',
            _amount(studies, records, first), *lines, *_measurement(records),
            f'Device: {_distinct(r.device for r in records)}; machine: '
            f'{_distinct(r.machine for r in records)}.',
            f'Versions: {_versions(records)}.',
            f'Commits: {_distinct(r.commit for r in records)}.',
            f'Dates: {_dates(records)}.',
        ]
    return ['## Setting', _list(lines)]


def _unchanged(studies: list[Study], records: list[StudyRecord]) -> bool:
    """Whether the study files still say what the runs were made with."""
    return {r.settings for r in records} <= {s.settings for s in studies}


def _changes(methods: list[StudyMethod], first: FirstConfig) -> str:
    """Options that all have, with the values of the first one's config."""
    found = []
    for key, value in shared_options(methods).items():
        if isinstance(value, (dict, list)):
            found.append(f'`{key}`{_types(value)}')
        else:
            found.append(f'`{key}` {value} (was {value_at(first.base, key)})')
    return ', '.join(found) or 'nothing'


def _types(value: dict | list) -> str:
    """The types of a part of a config, in brackets; '' if it has none."""
    names = [part['type'] for part in (
        value if isinstance(value, list) else [value])
             if isinstance(part, dict) and isinstance(part.get('type'), str)]
    return f' ({", ".join(names)})' if names else ''


def _training(first: FirstConfig) -> str:
    """Batch and optimizer, as the config has them."""
    optimizer = value_at(first.run, 'optim_wrapper.optimizer')
    if isinstance(optimizer, Mapping):
        optimizer = ', '.join(str(value) if key == 'type' else f'{key} {value}'
                              for key, value in optimizer.items())
    batch = value_at(first.run, 'train_dataloader.batch_size')
    return f'Batch size: {batch}; optimizer: {optimizer}.'


def _amount(studies: list[Study], records: list[StudyRecord],
            first: FirstConfig) -> str:
    methods = methods_of(studies)
    planned = sum(planned_runs(records, m) for m in methods)
    lengths = sorted({trained_epochs(r) for r in records if not r.diverged})
    epochs = ' or '.join(map(str, lengths or [0]))
    images = images_per_epoch(first.dataset)
    each = (f', {lengths[0] * images:,} images' if images and
            len(lengths) == 1 and _unchanged(studies, records) else '')
    hours = sum(r.cpu_seconds for r in records) / 3600
    time = f'; {hours:.1f} hours of processor time' if hours else ''
    return (f'{len(records)} of {planned} runs of {len(methods)} methods, '
            f'{epochs} epochs{each} a run{time}.')


def _measurement(records: list[StudyRecord]) -> list[str]:
    found = [m for r in records for m in r.stiffness.values()]
    if not found:
        return []
    samples = _distinct(f'{m.get("samples") or 0:,}' for m in found)
    lost = sum(m.get('lost') or 0 for m in found)
    names = ', '.join(f'`{name}`' for name in definitions_of(records))
    return [f'Stiffness: of the same {samples} images of the validation '
            f'split after training, by the definitions {names} of the neural '
            'stiffness index (NSI, see `docs/stiffness.md`; `update` is not '
            'divided by Δt); '
            f'{lost} samples were not finite and are left out.']


def _versions(records: list[StudyRecord]) -> str:
    names = dict.fromkeys(name for r in records for name in r.versions)
    return ', '.join(
        f'{name} ' + _distinct(r.versions.get(name, 'absent')
                               for r in records) for name in names)


def _result_note(metric: str, records: list[StudyRecord],
                 methods: list[StudyMethod]) -> str:
    first = next(iter(definitions_of(records)), 'residual')
    time = ('Processor time is of the pieces that study.sh trained and '
            'measured to their end, on the machines above, not of what Slurm '
            'trained. ' if any(r.cpu_seconds for r in records) else '')
    paper = ('The paper\'s figures are of its own setting.'
             if any(method.paper for method in methods) else '')
    return (f'`{metric}`: mean ± standard deviation (n − 1) over n runs, '
            'after the last epoch and of the best one, which is chosen on '
            'the images that it is tested on. Differences are of the last '
            'epoch, paired by seed, with a 95 % t interval over seeds; "2 '
            'seeds" says that the other method lacks some. Total '
            f'neural stiffness (TNS) and NSI by the definition `{first}`. '
            f'{time}{paper}').rstrip()


def _ablation(records: list[StudyRecord],
              methods: list[StudyMethod]) -> list[str]:
    if not any(r.steps for r in records):
        return []
    return ['## Step sizes held fixed',
            ABLATION.format(metric=f'`{records[0].metric}`'),
            ablation_table(records, methods)]


def _stiffness(records: list[StudyRecord],
               methods: list[StudyMethod]) -> list[str]:
    metric = f'`{records[0].metric}`'
    return [
        '## Stiffness', stiffness_table(records, methods),
        'By stage, means over its measured blocks, by the first definition:',
        stage_table(records, methods),
        '## Stiffness and accuracy', CORRELATIONS.format(
            metric=metric, runs=sum(not r.diverged for r in records),
            methods=len({r.method for r in records if not r.diverged})),
        correlation_table(records), EPOCHS.format(metric=metric),
        epoch_table(records)
    ]


def _dates(records: list[StudyRecord]) -> str:
    first, last = (of(r.date for r in records) for of in (min, max))
    return first if first == last else f'{first} to {last}'


def _distinct(values: Iterable[str]) -> str:
    return ' / '.join(dict.fromkeys(map(str, values)))


def _list(lines: Iterable[str]) -> str:
    return '\n'.join(fill(line, 78, initial_indent='- ',
                          subsequent_indent='  ', break_long_words=False,
                          break_on_hyphens=False) for line in lines)
