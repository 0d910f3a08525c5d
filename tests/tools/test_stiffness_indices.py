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


def test_where_the_two_systems_are_stiff(theory):
    found = theory.follow(theory.systems(100.)[0], 1e-6)
    resting = (found.times > 10) & (found.times < 60)
    assert resting.any() and (found.si[resting] > 100).all()
    assert (found.sai[resting] < .1).all() and found.sai.max() > 100
    assert found.growing.any() and found.asymmetry.median() > .5
    found = theory.follow(theory.systems(1.)[1], 1e-6)
    assert found.si[0] == pytest.approx(.04)
    assert found.si[-1] == found.si.max() and found.si[-1] > 5e3
    assert found.sai[-1] < 1e-4 < found.sai[0] and not found.growing.any()


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
