"""Step size against stiffness: Fig. 9 of the paper."""
import numpy as np

from stepnet_mm.stiffness import StiffnessRecord
from stepnet_mm.visualization import check_records
from stepnet_mm.visualization.style import (
    WIDTH,
    color,
    new_figure,
    points,
    styled,
)

#: With fewer blocks a correlation along depth says nothing.
LEAST = 3
#: Relative spread up to which numbers count as equal: a float32 mean of equal
#: numbers is off by about 1e-7.
EQUAL = 1e-6


def has_steps(record: StiffnessRecord) -> bool:
    """Whether a record has step sizes for :func:`step_figure`."""
    return bool(record.step.isfinite().any())


@styled
def step_figure(record: StiffnessRecord,
                blocks: list | None = None):
    """Mean step size Δt against NSI (Fig. 9).

    a: a point per sample, a panel per block. b: for each sample, Pearson's r
    of NSI and Δt over the blocks of one stage, the first that has three
    blocks with a gate; left out if there is no such stage or r.

    Args:
        record (StiffnessRecord): of a model with known gates.
        blocks (list[str], optional): names for a; left out, the first, the
            middle and the last of b's stage.

    Returns:
        matplotlib.figure.Figure: a, above b where there is one.

    Raises:
        ValueError: if no block or one of ``blocks`` has no gate, or no
            sample is finite.
    """
    check_records([record])
    nsi, step, gated = _with_gates(record)
    along = _blocks_of_stage(record, gated)
    chosen = _chosen(record, gated, along, blocks)
    r = pearson(nsi[:, along], step[:, along])
    has_b = len(along) >= LEAST and bool(np.isfinite(r).any())
    rows, columns = -(-len(chosen) // 3), min(3, len(chosen))
    figure = new_figure(WIDTH, .5 + 2.9 * rows + 2.7 * has_b)
    grid = figure.add_gridspec(rows + has_b, columns)
    for i, column in enumerate(chosen):
        _scatter(figure.add_subplot(grid[i // 3, i % 3]),
                 record.header.blocks[column], nsi[:, column],
                 step[:, column])
    if has_b:
        stage = record.header.stage[along[0]]
        _histogram(figure.add_subplot(grid[-1, :]),
                   f'stage {stage}, {len(along)} blocks', r)
    lost = len(record.nsi) - len(nsi)
    note = f'; not finite, left out: {lost} of {len(record.nsi)}'
    figure.suptitle(f'{record.name}: mean step size Δt against NSI, '
                    f'{len(nsi)} samples{note if lost else ""}')
    return figure


def pearson(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r along the last axis, (..., n) -> (...).

    It is NaN where x or y is constant up to rounding.
    """
    constant = _is_constant(x) | _is_constant(y)
    x, y = (v - v.mean(-1, keepdims=True) for v in (x, y))
    norm = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(constant, np.nan,
                    (x * y).sum(-1) / np.where(constant, 1., norm))


def _is_constant(x: np.ndarray) -> np.ndarray:
    return np.ptp(x, axis=-1) <= EQUAL * np.abs(x).max(-1)


def _with_gates(record: StiffnessRecord) -> tuple:
    """NSI and Δt of the finite samples; the columns that have a gate."""
    if not has_steps(record):
        raise ValueError(
            f'{record.name}: expected the record of a model with step sizes, '
            'such as StepNet or SE, got no block with a known gate')
    nsi, step = record.nsi.numpy(), record.step.numpy()
    gated = np.flatnonzero(np.isfinite(step).any(0))
    finite = np.isfinite(nsi).all(1) & np.isfinite(step[:, gated]).all(1)
    if not finite.any():
        raise ValueError(
            f'{record.name}: expected a sample with a finite NSI and step '
            f'size everywhere, got none in {len(nsi)}')
    return nsi[finite], step[finite], gated


def _blocks_of_stage(record: StiffnessRecord, gated) -> np.ndarray:
    """The columns of b, which are of one stage."""
    stages = np.array(record.header.stage)[gated]
    found, counts = np.unique(stages, return_counts=True)
    return gated[stages == found[np.argmax(counts >= LEAST)]]


def _chosen(record: StiffnessRecord, gated, along, blocks) -> list:
    """The columns of a."""
    if blocks is None:
        return along[np.unique([0, len(along) // 2, len(along) - 1])]
    names = [record.header.blocks[column] for column in gated]
    if not {*blocks} <= {*names}:
        raise ValueError(f'blocks: expected some of {record.name} with a '
                         f'known gate, {names}, got {blocks}')
    return [gated[names.index(name)] for name in blocks]


def _scatter(axes, name: str, nsi: np.ndarray, step: np.ndarray) -> None:
    from scipy import stats
    # As one picture: a vector file of 10,000 points is slow to show.
    axes.scatter(nsi, step, s=points(3)**2, alpha=.4, linewidth=0,
                 color=color(0), rasterized=True)
    r, note = float(pearson(nsi, step)), 'no correlation: constant values'
    if np.isfinite(r):
        rho = stats.spearmanr(nsi, step).statistic
        note = f'Pearson {_signed(r)}, Spearman {_signed(rho)}'
    axes.set_title(f'{name}\n{note}')
    axes.set(xlabel='NSI (Eq. 4)', ylabel='mean step size Δt')


def _histogram(axes, name: str, r: np.ndarray) -> None:
    """The distribution of r over samples."""
    found = r[np.isfinite(r)]
    axes.hist(found, bins=np.linspace(-1, 1, 41), color=color(0))
    middle, lost = np.median(found), len(r) - len(found)
    axes.axvline(middle, color=color(1), linestyle='--')
    note = f' ({lost} with constant values left out)' if lost else ''
    axes.set_title(
        f'{name}: {len(found)} samples{note}, median (dashed)'
        f' {_signed(middle)}')
    axes.set(xlabel="Pearson's r of NSI and Δt along depth, by sample",
             ylabel='samples', xlim=(-1, 1))


def _signed(r: float) -> str:
    return f'{r:+.2f}'.replace('-', '−')
