"""A page on a study: its setting, tables, figures and limits."""
import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
from mmengine.config import Config

from .records import StudyRecord
from .run import misfit
from .statistics import (
    paired_difference,
    runs_of_method,
    t_factor,
    trained_epochs,
)
from .study import Study, StudyMethod
from .tables import (
    ACROSS,
    ablation_table,
    correlation_table,
    definitions_of,
    epoch_table,
    places,
    planned_runs,
    result_table,
    stage_table,
    stiffness_table,
)

#: Of studies that name none; 'none' and 'all' are methods of
#: tools/analysis/lottery_configs.py.
BASELINES = ('plain', 'se', 'constant', 'none', 'all')
#: Training images of the datasets whose names end in these.
IMAGES = dict(CIFAR10=50_000, CIFAR100=50_000)
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


class FirstConfig(NamedTuple):
    """The config of a study's first method, which stands for all.

    Attributes:
        base (Config): as its file has it.
        run (Config): with the options of the method.
    """
    base: Config
    run: Config

    @classmethod
    def read(cls, studies: list[Study]) -> 'FirstConfig':
        """Read it once, since that is slow.

        Raises:
            ValueError: if it cannot be read, or the options do not fit.
        """
        method = studies[0].methods[0]
        try:
            base = Config.fromfile(str(method.config))
            run = copy.deepcopy(base)
            run.merge_from_dict(copy.deepcopy(method.options))
        except Exception as error:  # a config is code, and may raise anything
            raise misfit(studies[0], method, error) from None
        return cls(base, run)

    @property
    def dataset(self) -> Mapping:
        """What is trained on."""
        return self.run.train_dataloader.dataset


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


def methods_of(studies: list[Study]) -> list[StudyMethod]:
    """Those of all studies, each name once."""
    found: dict[str, StudyMethod] = {}
    for study in studies:
        for method in study.methods:
            found.setdefault(method.name, method)
    return list(found.values())


def baselines_of(studies: list[Study]) -> list[str]:
    """What the studies name, else the usual ones, each once.

    Those are left out that are no method of these studies.
    """
    names = {method.name for method in methods_of(studies)}
    found = dict.fromkeys(name for study in studies
                          for name in study.baselines or ())
    return [name for name in found or BASELINES if name in names]


def limits(studies: list[Study], records: list[StudyRecord],
           first: FirstConfig) -> list[str]:
    """What the facts of a study do not let one conclude, in sentences."""
    methods = methods_of(studies)
    return [text for text in (
        _unfinished(records, methods),
        _left_out(records),
        _machines(records),
        _few_seeds(records, methods),
        *(_unclear(records, methods, other)
          for other in baselines_of(studies)),
        _short(records, first),
        _small(first),
        _files(records),
        _changed_files(records),
    ) if text]


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
    text = [f'# {title or ", ".join(study.name for study in studies)}',
            'Written by `tools/study.py report` from the records of the runs; '
            'edits are lost.']
    for study in studies:
        about = ast.get_docstring(ast.parse(study.path.read_text()))
        text += [about] if about else []
    return text


def _setting(studies: list[Study], records: list[StudyRecord],
             first: FirstConfig) -> list[str]:
    changes = _changes(methods_of(studies), first)
    lines = [f'Changed in every config: {changes}.']
    if records:
        lines = [
            f'Data: {_distinct(r.dataset_type for r in records)}.',
            _amount(studies, records, first), *lines, *_measurement(records),
            f'Device: {_distinct(r.device for r in records)}; machine: '
            f'{_distinct(r.machine for r in records)}.',
            f'Versions: {_versions(records)}.',
            f'Commits: {_distinct(r.commit for r in records)}.',
            f'Dates: {min(r.date for r in records)} to '
            f'{max(r.date for r in records)}.',
        ]
    if not _unchanged(studies, records):
        lines.append('The records are of other settings than the study file '
                     'has now.')
    return ['## Setting', _list(lines)]


def _unchanged(studies: list[Study], records: list[StudyRecord]) -> bool:
    """Whether the study files still say what the runs were made with."""
    return {r.settings for r in records} <= {s.settings for s in studies}


def _changes(methods: list[StudyMethod], first: FirstConfig) -> str:
    """Options that all have, with the values of the first one's config."""
    found = []
    for key, value in shared_options(methods).items():
        if isinstance(value, (dict, list)):
            found.append(f'`{key}`')
        else:
            found.append(f'`{key}` {value} (was {_at(first.base, key)})')
    return ', '.join(found) or 'nothing'


def _at(cfg: Config, key: str) -> Any:
    """A config's value at ``a.b.c``; 'not there' otherwise."""
    value: Any = cfg
    for part in key.split('.'):
        value = value.get(part, 'not there') if isinstance(
            value, Mapping) or isinstance(value, Config) else 'not there'
    return value


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
    time = ('Processor time is of the pieces that study.py trained and '
            'measured to their end, on the machines above, not of what Slurm '
            'trained. ' if any(r.cpu_seconds for r in records) else '')
    paper = ('The paper\'s figures are of its own setting.'
             if any(method.paper for method in methods) else '')
    return (f'`{metric}`: mean ± standard deviation (n − 1) over n runs, '
            'after the last epoch and of the best one, which is chosen on '
            'the images that it is tested on. Differences are of the last '
            'epoch, paired by seed, with a 95 % t interval over seeds. Total '
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


def _unfinished(records: list[StudyRecord],
                methods: list[StudyMethod]) -> str:
    tried = Counter(method for method, _ in {r.key for r in records})
    absent = [m.name for m in methods if not tried[m.name]]
    part = [f'{m.name} ({tried[m.name]} of {len(m.seeds)})' for m in methods
            if 0 < tried[m.name] < len(m.seeds)]
    others = sorted({*tried} - {m.name for m in methods})
    texts = [f'{what}: {", ".join(names)}.' for what, names in (
        ('Not yet run', absent), ('Not all seeds', part),
        ('Run, but in no study file', others)) if names]
    return ' '.join(texts)


def _left_out(records: list[StudyRecord]) -> str:
    names = [f'{r.method}, seed {r.seed}' for r in records if r.diverged]
    return (f'Diverged, and in no mean: {"; ".join(names)}. Means of the '
            'other runs flatter these methods.' if names else '')


def _machines(records: list[StudyRecord]) -> str:
    """Which methods ran where, if not all on the same."""
    methods: dict[str, dict[str, None]] = {}
    for record in records:
        methods.setdefault(record.made_on, {})[record.method] = None
    names = '; '.join(f'{name}: {", ".join(own)}'
                      for name, own in methods.items())
    return (f'The runs were made on different machines ({names}). They may '
            'round differently, which makes other networks of the same seed; '
            'times do not compare. Pairs are of one machine as far as there '
            f'are such; differences with{ACROSS} have pairs of two '
            'machines. Runs of one seed on two machines begin with the same '
            'weights and order of images: in a difference they count as one '
            'seed, elsewhere as independent.'
            if len(methods) > 1 else '')


def _few_seeds(records: list[StudyRecord],
               methods: list[StudyMethod]) -> str:
    counts = [len({run.seed for run in runs_of_method(records, m.name)})
              for m in methods]
    n = min((count for count in counts if count > 1), default=0)
    if not n:
        return 'No method has two seeds: no difference has an interval.'
    return (f'Over {n} seeds a 95 % interval reaches {t_factor(n):.1f} '
            'standard deviations to either side, and the standard deviations '
            'themselves are rough. The intervals are not corrected for '
            f'{len(methods)} methods: one in 20 is expected to miss the true '
            'difference.')


def _unclear(records: list[StudyRecord], methods: list[StudyMethod],
             other: str) -> str:
    """Which methods may be as good as another one."""
    found = [(m.name, paired_difference(records, m.name, other))
             for m in methods if m.name != other]
    known = [(name, d.low, d.high) for name, d in found
             if d.low is not None and d.high is not None]
    if not known:
        return ''
    names = [name for name, low, high in known if low <= 0 <= high]
    half = np.median([(high - low) / 2 for _, low, high in known])
    return (f'Not told apart from `{other}` (interval with 0): '
            f'{", ".join(names) or "none"}, of {len(known)} methods; half '
            f'the intervals are wider than ± {half:.{places(records)}f}.')


def _short(records: list[StudyRecord], first: FirstConfig) -> str:
    full = _at(first.base, 'train_cfg.max_epochs')
    epochs = max(map(trained_epochs, records), default=0)
    if not isinstance(full, int) or not 0 < epochs < full:
        return ''
    return (f'{epochs} epochs of the config\'s {full}: what helps early '
            'need not help at the end, and the numbers do not compare with '
            'the paper\'s.')


def _small(first: FirstConfig) -> str:
    """What the study made of another size than its configs."""
    size, was = _size(first.run), _size(first.base)
    depth = _at(first.run, 'model.backbone.depth')
    parts = ([f'images of {size} px'] if size not in (None, was) else []) + (
        [f'depth {depth}']
        if depth != _at(first.base, 'model.backbone.depth') else [])
    return (f'With {" and ".join(parts)} the networks are not the paper\'s; '
            'nothing is said about theirs.' if parts else '')


def _size(cfg: Config) -> Any:
    """What training images are resized to; None if they are not."""
    steps = cfg.train_dataloader.dataset.get('pipeline', [])
    return next((s.get('scale') for s in steps if s['type'] == 'Resize'), None)


def _files(records: list[StudyRecord]) -> str:
    names = sorted({r.dataset_type for r in records})
    read = [name for name in names if name.startswith('Folder')]
    return (f'{", ".join(f"`{n}`" for n in read)} reads folders of image '
            'files where there are any. JPEG files differ from the official '
            'pixels that the paper used.' if read else '')


def _changed_files(records: list[StudyRecord]) -> str:
    dirty = sum('-dirty' in r.commit for r in records)
    return ('Runs made with files that differ from their commit: '
            f'{dirty} of {len(records)}.' if dirty else '')


def _distinct(values: Iterable[str]) -> str:
    return ' / '.join(dict.fromkeys(map(str, values)))


def _list(lines: Iterable[str]) -> str:
    return '\n'.join(fill(line, 78, initial_indent='- ',
                          subsequent_indent='  ', break_long_words=False,
                          break_on_hyphens=False) for line in lines)
