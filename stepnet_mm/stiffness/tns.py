r"""Total Neural Stiffness (TNS), in closed form.

It is Eq. 5 of https://arxiv.org/abs/2308.09939.

Index legend: N samples, L measured blocks, S stages, M1 and M2 the relative
and the absolute threshold of Eq. 5.

One sample has stiffness of degree (M1, M2) when some block t of some stage s
has NSI_t >= max(mu_s (1 + M1), M2), i.e. when (M1, M2) lies in the union of
the rectangles [0, a_s] x [0, b_s] with b_s = max_t NSI_t and
a_s = b_s / mu_s - 1. The double integral of Eq. 5 is the mean area of that
union, a sum of S terms, without a grid of thresholds.

All functions raise a ValueError on wrong shapes, no column, or a
negative NSI or threshold.
"""
from typing import NamedTuple

import torch
from torch import Tensor


class StageSummary(NamedTuple):
    """Mean and maximum NSI by stage; ``finite`` marks the valid samples."""
    stages: Tensor  # (S,) the labels, ascending
    mean: Tensor  # (N, S) mu_s, at most the maximum
    maximum: Tensor  # (N, S) b_s
    finite: Tensor  # (N,) bool

    def tns(self) -> Tensor:
        """(N,), as :func:`total_neural_stiffness`."""
        a, order = _excess(self.maximum, self.mean).sort(1, descending=True)
        height = self.maximum.gather(1, order).cummax(1).values
        narrower = torch.cat([a[:, 1:], torch.zeros_like(a[:, :1])], 1)
        area = ((a - narrower) * height).sum(1)
        return area.masked_fill(~self.finite, torch.inf)


def stage_summary(nsi: Tensor, stage: Tensor) -> StageSummary:
    """Mean and maximum NSI of each sample in each stage, in float64.

    Takes the same as :func:`total_neural_stiffness`. Rows with an inf or NaN
    keep it.
    """
    nsi, stage = _checked(nsi, stage)
    stages = torch.unique(stage)
    columns = [nsi[:, stage == s] for s in stages]
    maximum = torch.stack([c.amax(1) for c in columns], 1)
    mean = torch.stack([c.mean(1) for c in columns], 1)
    return StageSummary(stages, torch.minimum(mean, maximum), maximum,
                        torch.isfinite(nsi).all(1))


def total_neural_stiffness(nsi: Tensor, stage: Tensor) -> Tensor:
    """TNS of each sample in closed form; its mean is the TNS of Definition 2.

    Args:
        nsi (Tensor): shape (N, L), NSI of every measured block (Eq. 4).
        stage (Tensor): shape (L,), the stage label of every column.

    Returns:
        Tensor: shape (N,), float64, no unit; inf for a sample with an inf
        or NaN, to be left out of a mean and counted.
    """
    return stage_summary(nsi, stage).tns()


def block_stiffness(nsi: Tensor, stage: Tensor) -> Tensor:
    """The area of each block's own rectangle of thresholds.

    Alone, block t gives its sample stiffness of degree (M1, M2) for all M in
    [0, NSI_t / mu_s - 1] x [0, NSI_t]: the double integral of
    1[NSI_t >= max(mu_s (1 + M1), M2)] over M is (NSI_t / mu_s - 1)+ NSI_t.
    These rectangles overlap. A sample's TNS is the area of their union, so it
    lies between their maximum and their sum.

    Takes the same as :func:`total_neural_stiffness`.

    Returns:
        Tensor: shape (N, L), float64, no unit; inf in the whole row of a
        sample with an inf or NaN.
    """
    nsi, mean, finite = _with_means(nsi, stage)
    area = _excess(nsi, mean) * nsi
    return area.masked_fill(~finite[:, None], torch.inf)


def stiffness_survival(nsi: Tensor, stage: Tensor, m1, m2) -> Tensor:
    """δ(M1, M2) of Eq. 5, the share of samples that are stiff to a degree.

    Args:
        nsi (Tensor): shape (N, L), as for :func:`total_neural_stiffness`.
        stage (Tensor): shape (L,), likewise.
        m1 (Tensor | sequence): shape (A,), relative thresholds >= 0.
        m2 (Tensor | sequence): shape (B,), absolute thresholds >= 0.

    Returns:
        Tensor: shape (A, B), float64, in [0, 1], over the samples without
        an inf or NaN; NaN if there is none.

    Raises:
        ValueError: also on a threshold that is negative or NaN.
    """
    _, mean, maximum, finite = stage_summary(nsi, stage)
    mean, maximum = mean[finite], maximum[finite]
    m1, m2 = _thresholds('m1', m1), _thresholds('m2', m2).to(maximum)
    rows = []
    for m in m1:
        reached = torch.where(maximum >= mean * (1 + m), maximum, -1.)
        best = reached.amax(1)  # (n,): the largest M2 that is satisfied
        rows.append((best[:, None] >= m2).double().mean(0))
    return torch.stack(rows)


def stiffness_proportion(nsi: Tensor, stage: Tensor, m1, m2) -> Tensor:
    """p̂(M1, M2) of §3.1, the mean share of the L blocks that are stiff.

    Takes, returns and raises the same as :func:`stiffness_survival`.
    """
    nsi, mean, finite = _with_means(nsi, stage)
    nsi, mean = nsi[finite], mean[finite]
    m1, m2 = _thresholds('m1', m1), _thresholds('m2', m2)
    return torch.stack([
        torch.stack([_is_stiff(nsi, mean, a, b).double().mean() for b in m2])
        for a in m1])


def stiff_blocks(nsi: Tensor, stage: Tensor, m1: float, m2: float) -> Tensor:
    """Which blocks are stiff to a degree: NSI_t >= max(mu_s (1 + M1), M2).

    Of NSI (N, L) and stages (L,); the degree are two numbers >= 0. Gives
    bools (N, L), False in the whole row of a sample with an inf or NaN.
    """
    nsi, mean, finite = _with_means(nsi, stage)
    degree = _thresholds('m1', m1), _thresholds('m2', m2)
    return _is_stiff(nsi, mean, *degree) & finite[:, None]


def _with_means(nsi, stage) -> tuple[Tensor, Tensor, Tensor]:
    """NSI and its stage's mean by block, (N, L) each, and ``finite``."""
    nsi, stage = _checked(nsi, stage)
    stages, mean, _, finite = stage_summary(nsi, stage)
    return nsi, mean[:, torch.searchsorted(stages, stage)], finite


def _is_stiff(nsi: Tensor, mean: Tensor, m1, m2) -> Tensor:
    return (nsi >= mean * (1 + m1)) & (nsi >= m2)


def _excess(maximum: Tensor, mean: Tensor) -> Tensor:
    """a_s = b_s / mu_s - 1, at least 0, and 0 for a stage of zeros."""
    ratio = maximum / mean.where(mean > 0, torch.ones_like(mean))
    return (ratio - 1).clamp(min=0).where(mean > 0, torch.zeros_like(mean))


def _checked(nsi, stage):
    nsi = torch.as_tensor(nsi, dtype=torch.float64)
    stage = torch.as_tensor(stage, device=nsi.device)
    if nsi.ndim != 2 or stage.shape != nsi.shape[1:] or not len(stage):
        raise ValueError('nsi, stage: expected (N, L) and (L,) with L >= 1, '
                         f'got {tuple(nsi.shape)} and {tuple(stage.shape)}')
    if (nsi < 0).any():
        raise ValueError('nsi: expected values >= 0, got '
                         f'{nsi[nsi < 0].min().item()}')
    return nsi, stage


def _thresholds(name, values) -> Tensor:
    values = torch.as_tensor(values, dtype=torch.float64)
    if not (values >= 0).all():
        raise ValueError(f'{name}: expected thresholds >= 0, got '
                         f'{values.tolist()}')
    return values
