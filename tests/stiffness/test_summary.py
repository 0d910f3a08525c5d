import math

import pytest
import torch

from stepnet_mm.stiffness import (check_degrees, stiffness_proportion,
                                  summarize_stiffness,
                                  total_neural_stiffness)

pytestmark = pytest.mark.core
STAGE = torch.tensor([1, 1, 2])


def test_the_numbers_are_means_over_samples():
    nsi = torch.rand(5, 3, dtype=torch.float64)
    out = summarize_stiffness(nsi, STAGE)
    assert math.isclose(out['tns'],
                        total_neural_stiffness(nsi, STAGE).mean().item())
    assert math.isclose(out['nsi_stage1_mean'], nsi[:, :2].mean().item())
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


@pytest.mark.parametrize('rows', [0, 3])
def test_nothing_finite_gives_the_count_alone(rows):
    nsi = torch.full((rows, 3), math.inf)
    assert summarize_stiffness(nsi, STAGE) == {'nonfinite': rows}


def test_blocks_and_degrees():
    nsi = torch.rand(5, 3, dtype=torch.float64)
    out = summarize_stiffness(nsi, STAGE, ['a', 'b', 'c'], [(.1, 0), (0, .5)])
    assert out['nsi/b'] == pytest.approx(nsi[:, 1].mean().item())
    for m1, m2 in ((.1, 0), (0, .5)):
        assert out[f'proportion_{m1:g}_{m2:g}'] == stiffness_proportion(
            nsi, STAGE, [m1], [m2]).item()
    assert not any(key.startswith('nsi/')
                   for key in summarize_stiffness(nsi, STAGE))


def test_check_degrees_gives_floats():
    assert check_degrees([(1, 0)], 'key') == ((1., 0.), )


@pytest.mark.parametrize('wrong', [.5, [.5], [(1, -1)], [(1, 2, 3)], 'ab'])
def test_wrong_degrees(wrong):
    with pytest.raises(ValueError, match='key: expected pairs'):
        check_degrees(wrong, 'key')
