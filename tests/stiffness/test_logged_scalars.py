import math

import numpy as np
import pytest
import torch

from stepnet_mm.stiffness import (
    RecordHeader,
    StiffnessRecord,
    check_degrees,
    stiffness_proportion,
    summarize_stiffness,
    summarize_tns,
    total_neural_stiffness,
)

STAGE = torch.tensor([1, 1, 2])


def test_the_numbers_are_means_over_the_finite_samples():
    nsi = torch.rand(7, 3, dtype=torch.float64)
    nsi[5, 0], nsi[6, 2] = math.inf, math.nan
    found = summarize_stiffness(nsi, STAGE, 'abc', [(.1, 0)])
    nsi = nsi[:5]
    assert found == pytest.approx(dict(
        summarize_tns(total_neural_stiffness(nsi, STAGE)), nonfinite=2,
        nsi_stage1_mean=nsi[:, :2].mean().item(),
        nsi_stage1_max=nsi[:, :2].max().item(),
        nsi_stage2_mean=nsi[:, 2].mean().item(),
        nsi_stage2_max=nsi[:, 2].max().item(),
        **{'proportion_0.1_0': stiffness_proportion(
            nsi, STAGE, [.1], [0.]).item()},
        **{f'nsi/{name}': nsi[:, i].mean().item()
           for i, name in enumerate('abc')}))
    for rows in (0, 3):
        assert summarize_stiffness(
            torch.full((rows, 3), math.inf), STAGE) == {'nonfinite': rows}
    assert all(map(math.isnan, summarize_tns(torch.zeros(0)).values()))


@pytest.mark.parametrize('count', [1, 10])
def test_quantiles_of_tns_are_those_of_numpy(count):
    tns = torch.rand(count, dtype=torch.float64)**4
    assert summarize_tns(tns) == pytest.approx(dict(
        tns=np.mean(tns.numpy()),
        tns_median=np.median(tns.numpy()),
        tns_q95=np.quantile(tns.numpy(), .95)))


def test_degrees():
    assert check_degrees([(.1, 0)], 'key') == ((.1, 0.), )
    for wrong in (.5, [(1, -1)], [(1, 2, 3)], [(math.nan, 0)]):
        with pytest.raises(ValueError, match='key: '):
            check_degrees(wrong, 'key')


def test_the_summary_by_block():
    """Of six samples, the first not finite; the last block has no gate."""
    nsi, step = torch.rand(6, 3, dtype=torch.float64), torch.rand(6, 3)
    nsi[0, 1], step[:, 2] = math.inf, math.nan
    header = RecordHeader('residual', ['a', 'b', 'c'], STAGE.tolist(),
                          [1, 2, 1], 6)
    record = StiffnessRecord(header, nsi, step.double())
    rows = record.summary_by_block((.5, .6))
    nsi = nsi[1:]
    means = torch.stack([nsi[:, STAGE == s].mean(1) for s in STAGE], 1)
    for i, row in enumerate(rows):
        bar = torch.maximum(means[:, i] * 1.5, torch.tensor(.6))
        assert row['stiff'] == (nsi[:, i] >= bar).double().mean()
        area = (nsi[:, i] / means[:, i] - 1).clamp(min=0) * nsi[:, i]
        assert row['area'] == pytest.approx(area.mean().item())
        assert row['mean'] == pytest.approx(nsi[:, i].mean().item())
    assert rows[0]['step'] == pytest.approx(step[1:, 0].mean().item())
    assert math.isnan(rows[2]['step'])
    assert (rows[1]['block'], rows[1]['stage'], rows[1]['position']) == (
        'b', 1, 2)
