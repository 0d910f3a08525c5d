import pytest
import torch

from stepnet_mm.stiffness import stiffness_survival, total_neural_stiffness

pytestmark = pytest.mark.core


@pytest.fixture
def benchmark(load_tool):
    return load_tool('benchmarks/tns_closed_form')


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('stages, blocks', [(1, 2), (3, 17), (4, 5)])
def test_the_bracket_holds_the_closed_form(benchmark, stages, blocks, seed):
    sample = benchmark.random_nsi(20, stages, blocks, seed=seed)
    tns = total_neural_stiffness(*sample).mean().item()
    widths = []
    for cells in (10, 40):
        low, high = benchmark.bracket(*sample,
                                      *benchmark.edges(*sample, cells))
        assert low <= tns <= high
        widths.append(high - low)
    assert widths[1] < .4 * widths[0]


@pytest.mark.parametrize('seed', range(5))
def test_both_grids_are_one_sum_in_the_bracket(benchmark, seed):
    sample = benchmark.random_nsi(30, 3, 4, seed=seed)
    edges = benchmark.edges(*sample, 25)
    low, high = benchmark.bracket(*sample, *edges)
    value = benchmark.grid_tns(*sample, *edges)
    assert low <= value <= high
    assert benchmark.lean_grid_tns(*sample, *edges) == pytest.approx(value)


def test_one_rectangle_by_hand(benchmark):
    # NSI 1 and 3: the rectangle [0, 0.5] x [0, 3].
    nsi, stage = torch.tensor([[1., 3.]]), torch.tensor([1, 1])
    assert benchmark.extent(nsi, stage) == (.5, 3.)
    m1, m2 = benchmark.edges(nsi, stage, 4)
    assert m1.tolist() == [0, .125, .25, .375, .5]
    assert benchmark.bracket(nsi, stage, m1, m2) == (1.5, 1.5)
    assert benchmark.grid_tns(nsi, stage, m1, m2) == 1.5


def test_nothing_is_stiff_beyond_the_grid(benchmark):
    sample = benchmark.random_nsi(50, 3, 6)
    width, height = benchmark.extent(*sample)
    outer = [width * 1.001, 0.], [height * 1.001, 0.]
    survival = stiffness_survival(*sample, *outer)
    assert survival[0].tolist() == [0., 0.] and survival[1, 0] == 0


def test_it_prints_that_they_agree(tool, capsys):
    tool('benchmarks/tns_closed_form', '--samples', 20, '--blocks', 4,
         '--cells', 12, '--runs', 1)
    printed = capsys.readouterr().out
    assert 'NSI (20, 12)' in printed and 'closed form within: yes' in printed


def test_a_wrong_size_is_named(tool, capsys):
    with pytest.raises(SystemExit):
        tool('benchmarks/tns_closed_form', '--cells', 0)
    assert '--cells: expected at least 1, got 0' in capsys.readouterr().err
