#!/usr/bin/env python
"""Which installed configs of the mm libraries become StepNets, and why not.

python tools/benchmarks/count_conversions.py > table.md

A config converts if to_stepnet.py writes its StepNet, that is, if this builds
and holds a step. About 20 minutes on one core: each network is built once.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import functools
import logging
import re
import warnings
from collections import Counter
from contextlib import redirect_stdout

import mmengine.config.utils

from stepnet_mm.config.conversion import (
    INSTALLED,
    Backbone,
    package_folder,
    to_stepnet,
)
from stepnet_mm.utils.command_line import command_parser

#: Settings that change no residual block.
OTHERS = ('init_cfg', 'frozen_stages', 'norm_eval', 'out_indices')


def main() -> None:
    """Convert all, and print two tables."""
    command_parser(__doc__).parse_args()
    warnings.simplefilter('ignore')
    logging.disable(logging.WARNING)
    mmengine.config.utils.load = functools.cache(mmengine.config.utils.load)
    Backbone.refusal = once_each(Backbone.refusal)  # type: ignore
    counts: Counter[str] = Counter()
    converted: Counter[str] = Counter()
    reasons: Counter[tuple] = Counter()
    for library in ('mmdet', 'mmpretrain', 'mmseg'):
        folder = package_folder(library) / INSTALLED
        for path in sorted(folder.rglob('*.py')):
            name = path.relative_to(folder)
            if '_base_' not in name.parts:
                reason = why_not(f'{library}::{name}')
                counts[library] += 1
                converted[library] += not reason
                reasons[library, reason] += bool(reason)
    print('| library | configs | converted | share |\n|---|---|---|---|')
    for library, count in counts.items():
        print(f'| {library} | {count} | {converted[library]} | '
              f'{converted[library] / count:.1%} |')
    print('\n| library | configs | not converted, because |\n|---|---|---|')
    for (library, reason), count in reasons.most_common():
        if count:
            print(f'| {library} | {count} | {reason} |')


def once_each(refusal):
    """The reason of each network, worked out once."""
    found: dict[str, str] = {}

    def once(self, step):
        key = str((self.library, self.name, sorted(
            (k, str(v)) for k, v in self.node.items() if k not in OTHERS)))
        if key not in found:
            found[key] = refusal(self, step)
        return found[key]

    return once


def why_not(name: str) -> str:
    """Why a config does not convert, '' if it does."""
    try:
        with redirect_stdout(None):  # some networks print
            to_stepnet(name)
    except ValueError as error:
        reason = str(error).removeprefix(f'{name}: ')
        # Of one network: the sizes are others in each.
        return re.sub(r'\(\d+ modules\)|/\S+/', '', reason)[:200]
    return ''


if __name__ == '__main__':
    main()
