#!/usr/bin/env python
"""Draw what tools/train.py adds to a config, and a preemption.

python tools/analysis/launch_figures.py docs/figures
"""
import stepnet_mm.utils.interrupts  # noqa: F401  Ctrl-C from here on

import copy
from pathlib import Path

from stepnet_mm.config import add_resume_and_hooks, read_config
from stepnet_mm.config.lookup import dicts_by_path, type_name
from stepnet_mm.resume.preemption_hook import EXIT_PREEMPTED
from stepnet_mm.utils.command_line import command_parser, output_folder
from stepnet_mm.visualization import style

CONFIG = Path(__file__).parents[2].joinpath(
    'configs/faster_rcnn_r34_stepnet_mini_coco.py')
BEFORE, ADDED = style.color(0), style.color(1)
#: What each part is for.
WHY = dict(
    LoadIntactImageFromFile='skips a broken image, and names it',
    ResumableIterBasedTrainLoop='goes on bit for bit',
    AtomicCheckpointHook='a file is whole, or the last one stays',
    BrokenImageHook='lists the broken images',
    PreemptionHook='saves when a job is stopped',
    NonFiniteLossHook='stops at a loss of NaN or inf')


def types_of(cfg):
    """Path -> name of each ``type`` in a config."""
    return {path: type_name(node)
            for path, node in dicts_by_path(dict(cfg.items()))
            if node.get('type')}


def changes_of(path):
    """(key, type before, '' for none, type after) of each change."""
    cfg = read_config(str(path))
    before = types_of(copy.deepcopy(cfg))
    after = types_of(add_resume_and_hooks(cfg, lambda line: None))
    # A loop may come without a type, as by_epoch.
    return [('.'.join(key for key in where if isinstance(key, str)),
             before.get(where, ''), name) for where, name in after.items()
            if before.get(where) != name]


@style.styled
def config_figure(changes):
    """A row for each change: its key, what was there and what runs."""
    figure = style.new_figure(5.2, .55 * len(changes) + .5)
    axes = figure.add_subplot(xlim=(0, 1), ylim=(len(changes) - .05, -.75))
    axes.axis('off')
    for x, text in (0, 'your config'), (.46, 'what train.py runs'):
        axes.text(x, -.5, text, weight='bold', va='center', size=11)
    for row, (key, before, after) in enumerate(changes):
        axes.axhline(row - .12, color=style.SHEET['grid.color'], zorder=0)
        axes.text(0, row + .15, key, color=style.MUTED, va='center', size=8)
        axes.text(0, row + .55, before or '—', color=BEFORE, va='center')
        axes.text(.46, row + .15, WHY[after], va='center', size=8,
                  color=style.MUTED)
        axes.text(.46, row + .55, after, color=ADDED, va='center',
                  weight='bold')
    return figure


@style.styled
def preemption_figure():
    """One job's two starts on a line of time."""
    figure = style.new_figure(5.2, 2.9)
    axes = figure.add_subplot(xlim=(0, 10), ylim=(-2.3, 2.6))
    axes.axis('off')
    for start, end, text in ((0, 4.6, 'training'),
                             (7.6, 10, 'goes on,\nbit for bit')):
        axes.barh(0, end - start, left=start, height=.9, color=BEFORE)
        axes.text((start + end) / 2, 0, text, color=style.PAPER,
                  ha='center', va='center', weight='bold')
    axes.barh(0, .9, left=4.6, height=.9, color=ADDED)
    axes.plot([5.5, 7.6], [0, 0], color=style.MUTED, linestyle=':')
    for x, y, text, align in (
            (3.1, 1.9, 'USR1, USR2 or TERM;\nthe iteration ends', 'center'),
            (5.05, -1.6, 'all ranks agree; save\npreempted_iter_N.pth',
             'center'),
            (5.55, 1.9, f'exit {EXIT_PREEMPTED};\nSlurm requeues', 'left'),
            (7.65, -1.6, 'train.py --resume\nfrom iteration N', 'left')):
        axes.plot([x, x], [.48 * y / abs(y), .7 * y], color=style.MUTED)
        axes.text(x, y, text, ha=align, va='center', size=10)
    return figure


def main():
    parser = command_parser(__doc__)
    parser.add_argument('out', type=output_folder, help='folder')
    out = parser.parse_args().out
    print(style.save_figure(config_figure(changes_of(CONFIG)),
                            out / 'train_config.png'))
    print(style.save_figure(preemption_figure(), out / 'preemption.png'))


if __name__ == '__main__':
    main()
