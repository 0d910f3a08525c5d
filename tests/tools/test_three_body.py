import numpy as np
import pytest


@pytest.fixture
def bodies(load_tool):
    return load_tool('theory/three_body')


def run(bodies, times, nearest):
    return bodies.Run(np.array(times, float), np.array(nearest, float), 0.)


@pytest.fixture
def dips(bodies):
    """Down from 2 to 0 and up again in t = 2 to 6 of 10."""
    return run(bodies, [0, 2, 4, 6, 10], [2, 2, 0, 2, 2])


def test_lagrange_orbit_is_a_circle(bodies):
    corners = np.exp(2j * np.pi / 3 * np.arange(3))
    found = bodies.simulate((corners, 1j * corners * 3**-.25), 10.)
    np.testing.assert_allclose(found.nearest, 3**.5, rtol=1e-8)
    assert found.energy_error < 1e-10


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
        positions, velocities = bodies.start_at_rest(rng)
        assert positions[0] == 1 and abs(positions.sum()) < 1e-12
        assert abs(positions[1]) <= 1
        assert positions[1].real <= 0 <= positions[1].imag
        assert not velocities.any()
        positions, velocities = bodies.start_on_circle(rng)
        radius = abs(positions)
        assert np.ptp(radius) < 1e-12 and .9 <= radius[0] <= 1.2
        circular = 1j * positions * radius**-1.5 * 3**-.25
        change = [velocities.real / circular.real,
                  velocities.imag / circular.imag]
        assert np.abs(np.array(change) - 1).max() <= .2


def test_times_and_intervals_below_by_hand(bodies, dips):
    for threshold, expected in ((0, 0), (.5, 1), (2, 4), (3, 10)):
        assert bodies.time_below(dips, threshold) == pytest.approx(expected)
    for length, expected in ((1, .2), (4, .5), (10, 1)):
        assert bodies.intervals_below(dips, .5, length) == expected
    late = run(bodies, [0, 5, 10], [2, 2, .1])  # in the last interval
    assert bodies.intervals_below(late, .5, 5) == .5
    near = run(bodies, [0, 10], [1, 1])  # one without a state
    assert bodies.intervals_below(near, 2, .1) == 1
    assert bodies.intervals_below(near, 1, .1) == 0
    far = run(bodies, [0, 10], [3, 3])
    assert bodies.shares([dips, far], .95) == pytest.approx((.5, .095, .1))
    assert bodies.threshold_for_time([dips], .1) == pytest.approx(.5)


def test_the_tool_draws_and_prints(tool, tmp_path, capsys):
    picture = tmp_path / 'three.png'
    tool('theory/three_body', '--simulations', 4, '--time', 1, '--out',
         picture)
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ['the', 'paper:', '?', '91.40%', '4.20%'] in rows
    assert '0 above 1e-06' in printed
    assert picture.read_bytes().startswith(b'\x89PNG')
