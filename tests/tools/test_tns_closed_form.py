import pytest
import torch

from stepnet_mm.stiffness import total_neural_stiffness


@pytest.fixture
def benchmark(load_tool):
    return load_tool('benchmarks/tns_closed_form')


@pytest.mark.parametrize('stages, blocks', [(1, 2), (3, 17)])
def test_the_bracket_holds_the_closed_form(benchmark, stages, blocks):
    sample = benchmark.random_nsi(20, stages, blocks, seed=0)
    tns = total_neural_stiffness(*sample).mean().item()
    widths = []
    for cells in (10, 40):
        edges = benchmark.edges(*sample, cells)
        low, high = benchmark.bracket(*sample, *edges)
        assert low <= tns <= high
        value = benchmark.grid_tns(*sample, *edges)
        assert low <= value <= high
        assert benchmark.lean_grid_tns(*sample, *edges) == pytest.approx(value)
        widths.append(high - low)
    assert widths[1] < .4 * widths[0]


def test_one_rectangle_by_hand(benchmark):
    # NSI 1 and 3: the rectangle [0, 0.5] x [0, 3].
    nsi, stage = torch.tensor([[1., 3.]]), torch.tensor([1, 1])
    assert benchmark.extent(nsi, stage) == (.5, 3.)
    m1, m2 = benchmark.edges(nsi, stage, 4)
    assert m1.tolist() == [0, .125, .25, .375, .5]
    assert benchmark.bracket(nsi, stage, m1, m2) == (1.5, 1.5)
    assert benchmark.grid_tns(nsi, stage, m1, m2) == 1.5


def test_it_prints_that_they_agree(tool, capsys):
    tool('benchmarks/tns_closed_form', '--samples', 20, '--blocks', 4,
         '--cells', 12, '--runs', 1)
    printed = capsys.readouterr().out
    assert 'NSI (20, 12)' in printed and 'closed form within: yes' in printed
