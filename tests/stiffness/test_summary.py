import math

import numpy as np
import pytest
import torch

from stepnet_mm.stiffness import (
    RecordHeader,
    StiffnessRecord,
    check_degrees,
    stiff_blocks,
    stiffness_proportion,
    summarize_blocks,
    summarize_stiffness,
    summarize_tns,
    total_neural_stiffness,
)

STAGE = torch.tensor([1, 1, 2])


def test_the_numbers_are_means_over_samples():
    nsi = torch.rand(5, 3, dtype=torch.float64)
    out = summarize_stiffness(nsi, STAGE)
    assert math.isclose(out['tns'],
                        total_neural_stiffness(nsi, STAGE).mean().item())
    assert math.isclose(out['nsi_stage1_mean'], nsi[:, :2].mean().item())
    assert out['tns_median'] == pytest.approx(
        total_neural_stiffness(nsi, STAGE).sort().values[2].item())
    assert out['nsi_stage1_max'] == nsi[:, :2].max().item()
    assert math.isclose(out['nsi_stage2_mean'], nsi[:, 2].mean().item())
    assert out['nonfinite'] == 0


def test_what_is_not_finite_is_left_out_and_counted():
    nsi = torch.rand(5, 3)
    broken = torch.cat([nsi, nsi[:2].clone()])
    broken[5, 0], broken[6, 2] = math.inf, math.nan
    expected = summarize_stiffness(nsi, STAGE, 'abc')
    out = summarize_stiffness(broken, STAGE, 'abc')
    assert out.pop('nonfinite') == 2 and expected.pop('nonfinite') == 0
    assert out == pytest.approx(expected)


def test_few_samples_move_the_mean_of_tns_alone():
    nsi = torch.rand(40, 3, dtype=torch.float64)
    before = summarize_stiffness(nsi, STAGE)
    highest = total_neural_stiffness(nsi, STAGE).argmax()
    nsi[highest] *= 1e4
    after = summarize_stiffness(nsi, STAGE)
    assert after['tns'] > 100 * before['tns']
    for key in ('tns_median', 'tns_q95'):
        assert after[key] == pytest.approx(before[key])


@pytest.mark.parametrize('count', [1, 2, 21])
def test_quantiles_of_tns_are_those_of_numpy(count):
    tns = torch.rand(count, dtype=torch.float64)**4
    assert summarize_tns(tns) == pytest.approx(dict(
        tns=np.mean(tns.numpy()),
        tns_median=np.median(tns.numpy()),
        tns_q95=np.quantile(tns.numpy(), .95)))


def test_without_a_sample_there_is_no_tns():
    assert all(map(math.isnan, summarize_tns(torch.zeros(0)).values()))


@pytest.mark.parametrize('rows', [0, 3])
def test_nothing_finite_gives_the_count_alone(rows):
    nsi = torch.full((rows, 3), math.inf)
    assert summarize_stiffness(nsi, STAGE) == {'nonfinite': rows}


def test_blocks_and_degrees():
    assert check_degrees([(1, 0)], 'key') == ((1., 0.), )
    nsi = torch.rand(5, 3, dtype=torch.float64)
    out = summarize_stiffness(nsi, STAGE, ['a', 'b', 'c'], [(.1, 0), (0, .5)])
    assert out['nsi/b'] == pytest.approx(nsi[:, 1].mean().item())
    for m1, m2 in ((.1, 0), (0, .5)):
        assert out[f'proportion_{m1:g}_{m2:g}'] == stiffness_proportion(
            nsi, STAGE, [m1], [m2]).item()
    assert not any(key.startswith('nsi/')
                   for key in summarize_stiffness(nsi, STAGE))


@pytest.mark.parametrize('wrong', [.5, [.5], [(1, -1)], [(1, 2, 3)],
                                   [(math.nan, 0)]])
def test_wrong_degrees(wrong):
    with pytest.raises(ValueError, match='key: '):
        check_degrees(wrong, 'key')


def gated_record():
    """Six samples, the first not finite; the last block has no gate."""
    nsi, step = torch.rand(6, 3, dtype=torch.float64), torch.rand(6, 3)
    nsi[0, 1], step[:, 2] = math.inf, math.nan
    header = RecordHeader('residual', ['a', 'b', 'c'], STAGE.tolist(),
                          [1, 2, 1], 6)
    return StiffnessRecord(header, nsi, step.double())


def test_summarize_blocks():
    record = gated_record()
    rows = summarize_blocks(record, (.5, .6))
    nsi = record.nsi[1:]
    means = torch.stack([nsi[:, STAGE == s].mean(1) for s in STAGE], 1)
    for i, row in enumerate(rows):
        bar = torch.maximum(means[:, i] * 1.5, torch.tensor(.6))
        assert row['stiff'] == (nsi[:, i] >= bar).double().mean()
        area = (nsi[:, i] / means[:, i] - 1).clamp(min=0) * nsi[:, i]
        assert row['area'] == pytest.approx(area.mean().item())
        assert row['mean'] == pytest.approx(nsi[:, i].mean().item())
    assert rows[0]['step'] == pytest.approx(record.step[1:, 0].mean().item())
    assert math.isnan(rows[2]['step'])
    assert (rows[1]['block'], rows[1]['stage'], rows[1]['position']) == (
        'b', 1, 2)


def test_stiff_blocks_leaves_out_what_is_not_finite():
    stiff = stiff_blocks(gated_record().nsi, STAGE, 0., 0.)
    assert stiff.shape == (6, 3) and not stiff[0].any()
    assert stiff[1:].any(1).all()
