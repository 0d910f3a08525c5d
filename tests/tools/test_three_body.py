import numpy as np
import pytest


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
    assert np.ptp(found.nearest) > .1


def test_starts(bodies):
    rng = np.random.default_rng(0)
    for _ in range(50):
        positions, velocities = bodies.random_start(rng)
        radius = abs(positions)
        assert np.ptp(radius) < 1e-12 and .9 <= radius[0] <= 1.2
        circular = 1j * positions * radius**-1.5 * 3**-.25
        change = [velocities.real / circular.real,
                  velocities.imag / circular.imag]
        assert np.abs(np.array(change) - 1).max() <= .2


def test_shares_by_hand(bodies):
    # Down from 2 to 0 and up again in t = 2 to 6 of 10; always far.
    dips, far = (
        bodies.Run(np.array([0., 2, 4, 6, 10]), np.array(nearest, float), 0.)
        for nearest in ([2, 2, 0, 2, 2], [3] * 5))
    for threshold, expected in ((0, (0, 0)), (.95, (.5, .095)), (2, (.5, .2)),
                                (4, (1, 1))):
        assert bodies.shares([dips, far], threshold) == pytest.approx(expected)
    assert bodies.threshold_for_time([dips], .1) == pytest.approx(.5)


def test_the_tool_draws_and_prints(tool, tmp_path, capsys):
    picture = tmp_path / 'three.png'
    tool('theory/three_body', '--simulations', 2, '--time', .2, '--out',
         picture)
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ['the', 'paper:', '?', '91.40%', '4.20%'] in rows
    assert '0 above 1e-06' in printed
    assert picture.read_bytes().startswith(b'\x89PNG')
