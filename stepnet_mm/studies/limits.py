"""What the facts of a study do not let one conclude."""
from collections import Counter
from typing import Any

import numpy as np
from mmengine.config import Config

from .first_config import FirstConfig, value_at
from .records import StudyRecord
from .statistics import (
    paired_difference,
    runs_of_method,
    t_factor,
    trained_epochs,
)
from .study import Study, StudyMethod, baselines_of, methods_of
from .tables import ACROSS, places


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
            'times do not compare. Differences are those on one machine; '
            f'where they have{ACROSS}, no machine ran both methods with some '
            'seed, and the means over machines are compared. Runs of one '
            'seed on two machines begin with the same weights and order of '
            'images: in a difference they count as one seed, elsewhere as '
            'independent.'
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
    return (f'Not shown to differ from `{other}` (the interval has 0 in it): '
            f'{", ".join(names) or "none"}, of {len(known)} compared; half '
            f'the intervals are wider than ± {half:.{places(records)}f}.')


def _short(records: list[StudyRecord], first: FirstConfig) -> str:
    full = value_at(first.base, 'train_cfg.max_epochs')
    epochs = max(map(trained_epochs, records), default=0)
    if not isinstance(full, int) or not 0 < epochs < full:
        return ''
    return (f'{epochs} epochs of the config\'s {full}: what helps early '
            'need not help at the end, and the numbers do not compare with '
            'the paper\'s.')


def _small(first: FirstConfig) -> str:
    """What the study made of another size than its configs."""
    size, was = _size(first.run), _size(first.base)
    depth = value_at(first.run, 'model.backbone.depth')
    parts = ([f'images of {size} px'] if size not in (None, was) else []) + (
        [f'depth {depth}']
        if depth != value_at(first.base, 'model.backbone.depth') else [])
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
