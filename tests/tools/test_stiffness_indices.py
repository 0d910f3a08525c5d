from functools import partial

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
        found.sai,
        torch.full((4, ), (1609 / 2)**.5).double(),
        rtol=5e-3,
        atol=0)
    assert not found.asymmetry.any() and not found.growing.any()


def test_where_the_two_systems_are_stiff(theory):
    found = theory.follow(theory.systems(100.)[0], 1e-6)
    resting = (found.times > 10) & (found.times < 60)
    assert resting.any() and (found.si[resting] > 100).all()
    assert (found.sai[resting] < .1).all()
    assert found.sai.max() > 100
    assert found.growing.any() and found.asymmetry.median() > .5
    found = theory.follow(theory.systems(1.)[1], 1e-6)
    assert found.si[0] == pytest.approx(.04)
    assert found.si[-1] == found.si.max() and found.si[-1] > 5e3
    assert found.sai[-1] < 1e-4 < found.sai[0] and not found.growing.any()


def test_linear_cases(theory):
    found, root = theory.linear_ratios([1e3, 1e5])
    gaps = {case: abs(values - root) for case, values in found.items()}
    assert gaps['free'][0] / gaps['free'][1] == pytest.approx(1e4, rel=.05)
    assert gaps['forced'][1] < .02 * gaps['forced'][0]
    assert found['slow'][0] / found['slow'][1] == pytest.approx(100)


def test_the_tool_draws_and_prints(theory, tmp_path, capsys, monkeypatch):
    """Of systems that take few steps, the last of which has no end."""
    easy = theory.systems(3.)[0]._replace(span=(0., 3.))
    endless = theory.System(
        'blow-up', lambda x: (x * x, ), (1., ), (0., 2.), 'linear')
    monkeypatch.setattr(theory, 'follow', partial(theory.follow, rtol=1e-4))
    monkeypatch.setattr(theory, 'systems', lambda mu: [easy, easy])
    monkeypatch.setattr('sys.argv', ['x', '--out', str(tmp_path / 'a.png')])
    theory.main()
    printed = capsys.readouterr().out
    assert printed.count('Theorem 2 does not apply') == 2
    assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')
    with np.errstate(all='ignore'), pytest.raises(
            RuntimeError, match='blow-up'):
        theory.follow(endless)
