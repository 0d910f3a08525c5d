"""The scalars of a measurement, as TNSHook and TNSMetric log them."""
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .tns import stage_summary, stiffness_proportion

#: The degree (M1, M2) at which the stiffness proportion is logged: 1.5 times
#: the stage's mean, without an absolute threshold.
DEGREE = (0.5, 0.)


def summarize_stiffness(nsi: Tensor, stage: Tensor,
                        blocks: Sequence[str] = ()) -> dict[str, float]:
    """TNS, NSI and the stiffness proportion of some samples.

    Args:
        nsi (Tensor): (N, L), NSI of every measured block (Eq. 4).
        stage (Tensor): (L,), the stage label of every column.
        blocks (sequence[str]): names of the L blocks; left out, the means
            by block are not reported.

    Returns:
        dict[str, float]: ``tns`` (Eq. 5), ``tns_median`` and ``tns_q95`` as
        :func:`summarize_tns` gives them; ``nsi_stage{s}_mean`` and
        ``nsi_stage{s}_max``; ``proportion_{M1}_{M2}``; ``nsi/{block}``, the
        block's mean; ``nonfinite``, the number of samples with an inf or NaN,
        which are left out of all others. That number alone if no sample is
        finite.
    """
    summary = stage_summary(nsi, stage)
    stages, mean, maximum, finite = summary
    lost: dict[str, float] = dict(nonfinite=int((~finite).sum()))
    if not finite.any():
        return lost
    nsi = torch.as_tensor(nsi, dtype=torch.float64)[finite]
    scalars = summarize_tns(summary.tns()[finite])
    for s, column, top in zip(stages.tolist(), mean[finite].T,
                              maximum[finite].T):
        scalars[f'nsi_stage{s}_mean'] = column.mean().item()
        scalars[f'nsi_stage{s}_max'] = top.max().item()
    m1, m2 = DEGREE
    scalars[f'proportion_{m1:g}_{m2:g}'] = stiffness_proportion(
        nsi, stage, [m1], [m2]).item()
    for name, column in zip(blocks, nsi.T):
        scalars[f'nsi/{name}'] = column.mean().item()
    return {**scalars, **lost}


def summarize_tns(tns: Tensor) -> dict[str, float]:
    """TNS of a network, and its spread over samples.

    Args:
        tns (Tensor): (N,), TNS of each sample, finite.

    Returns:
        dict[str, float]: ``tns``, the mean (Eq. 5), which few samples can
        dominate; ``tns_median`` and ``tns_q95``, the 50 % and the 95 %
        quantile, interpolated linearly; all NaN without a sample.
    """
    if not len(tns):
        tns = tns.new_tensor([math.nan])
    return dict(tns=tns.mean().item(), tns_median=tns.quantile(.5).item(),
                tns_q95=tns.quantile(.95).item())
