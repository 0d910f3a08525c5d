import numpy as np
import pytest
import torch


@pytest.fixture
def theory(load_tool):
    return load_tool('theory/stiffness_indices')


def test_indices_of_a_decay(theory):
    times = torch.linspace(0, 1e-4, 5).double()
    rates = torch.tensor([-3., -40.]).double()
    states = torch.exp(rates * times[:, None])
    found = theory.indices(lambda x, y: (-3 * x, -40 * y), states, times)
    torch.testing.assert_close(found.si, torch.full((4, ), 40.).double())
    torch.testing.assert_close(
        found.sai, torch.full((4, ), (1609 / 2)**.5).double(), rtol=5e-3,
        atol=0)
    assert not found.asymmetry.any() and not found.growing.any()


def test_what_the_tool_prints(theory, capsys, monkeypatch):
    """Theorem 2 by the numbers of docs/results/theory.md; a short system."""
    easy = theory.systems(3.)[0]._replace(span=(0., 3.))
    monkeypatch.setattr(theory, 'systems', lambda mu: [easy])
    monkeypatch.setattr('sys.argv', ['x'])
    theory.main()
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ['1e+02', '0.422956', '0.42357', '0.0220764'] in rows
    assert '√c = 0.423380' in printed


@pytest.fixture
def bodies(load_tool):
    return load_tool('theory/three_body')


def test_figure_eight_orbit_closes(bodies):
    # Chenciner and Montgomery 2000, with Simo's initial values.
    first, last = .97000436 - .24308753j, -.93240737 - .86473146j
    positions = np.array([first, -first, 0])
    velocities = np.array([-last / 2, -last / 2, last])
    found = bodies.simulate((positions, velocities), 6.32591398)
    assert found.energy_error < 1e-9
    np.testing.assert_allclose(found.nearest[-1], abs(first), atol=1e-5)


def test_shares_by_hand(bodies):
    # Down from 2 to 0 and up again in t = 2 to 6 of 10; always far.
    dips, far = (
        bodies.Run(np.array([0., 2, 4, 6, 10]), np.array(nearest, float), 0.)
        for nearest in ([2, 2, 0, 2, 2], [3] * 5))
    for threshold, expected in ((0, (0, 0)), (.95, (.5, .095)), (2, (.5, .2)),
                                (4, (1, 1))):
        assert bodies.shares([dips, far], threshold) == pytest.approx(expected)
    by_simulations, by_time = bodies.thresholds_for([dips, far], .5, .05)
    assert 0 < by_simulations < 1e-300 and by_time == pytest.approx(.5)


def test_the_table_of_three_bodies(tool, capsys):
    """The start is a draw of seed 0; a circular orbit has 1.558 to 2.078."""
    tool('theory/three_body', '--simulations', 2, '--time', .2)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[-1] == ['the', 'paper', '91.40%', '4.20%']
    assert 1.4 < float(rows[-2][0]) < float(rows[-3][0]) < 2.1
