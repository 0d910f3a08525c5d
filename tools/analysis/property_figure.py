"""Stiff samples and stiff blocks: the properties of §3.1."""
import numpy as np

from stepnet_mm.stiffness import (
    StiffnessRecord,
    labels,
    stage_summary,
    stiffness_proportion,
    stiffness_survival,
)
from stepnet_mm.visualization.stiffness_figures import (
    check_records,
    lost_note,
)
from stepnet_mm.visualization.style import (
    WIDTH,
    look,
    name_lines,
    new_figure,
    points,
    styled,
    theme,
)

#: How many thresholds M1 a line joins.
POINTS = 101


@styled
def property_figure(records: list, m2: float = 0., mark: float | None = None):
    """How many samples are stiff, and how many blocks, over M1.

    Left, property (1): δ(M1, M2) of Eq. 5. Right, property (2): p̂(M1, M2).
    M1 goes from 0 to where δ is about 1 % in all records, or to the mark.

    Args:
        records (list[StiffnessRecord]): a line each.
        m2 (float): the threshold M2 >= 0 of both.
        mark (float, optional): a value of M1 to mark.

    Returns:
        matplotlib.figure.Figure: two panels.

    Raises:
        ValueError: on records that do not go together, or a negative M2.
    """
    check_records(records)
    highest = max(mark or 0., *map(_highest_m1, records)) or 1.
    m1 = np.linspace(0, highest, POINTS)
    figure = new_figure(WIDTH, 4)
    for axes, share, title, what in zip(
            figure.subplots(1, 2), (stiffness_survival, stiffness_proportion),
            ('(1) samples: δ', '(2) blocks: p̂'), ('samples', 'blocks')):
        for i, record in enumerate(records):
            found = share(record.nsi, record.stage, m1, [m2])[:, 0]
            axes.plot(m1, 100 * found, **look(i))
        axes.set(title=f'{title}(M1, {m2:g})', xlabel='M1', ylim=(0, 102),
                 ylabel=f'% of the {what}')
        if mark is not None:
            axes.axvline(mark, color=theme().muted, linewidth=points(1),
                         linestyle=':', zorder=0)
    name_lines(figure, labels(records))
    figure.suptitle('Stiff samples and stiff blocks' + lost_note(records))
    return figure


def _highest_m1(record: StiffnessRecord) -> float:
    """The M1 that about one sample in a hundred reaches in some stage."""
    _, mean, maximum, finite = stage_summary(record.nsi, record.stage)
    excess = (maximum / mean - 1).nan_to_num(0.)[finite].amax(1)
    return float(np.quantile(excess.numpy(), .99))
