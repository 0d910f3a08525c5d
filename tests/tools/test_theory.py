import numpy as np
import pytest
import torch


def test_the_table_of_theorem_2(load_tool, capsys, monkeypatch):
    """By the numbers of docs/results/theory.md; a short system."""
    theory = load_tool('theory/stiffness_indices')
    easy = theory.systems(3.)[0]._replace(span=(0., 3.))
    monkeypatch.setattr(theory, 'systems', lambda mu: [easy])
    monkeypatch.setattr('sys.argv', ['x'])
    theory.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ['1e+02', '0.422956', '0.42357', '0.0220764'] in rows
    assert rows[0][-1] == '0.423380'


def test_shares_by_hand(load_tool):
    bodies = load_tool('theory/three_body')
    # Down from 2 to 0 and up again in t = 2 to 6 of 10; always far.
    dips, far = (
        bodies.Run(np.array([0., 2, 4, 6, 10]), np.array(nearest, float), 0.)
        for nearest in ([2, 2, 0, 2, 2], [3] * 5))
    for threshold, expected in ((0, (0, 0)), (.95, (.5, .095)), (2, (.5, .2)),
                                (4, (1, 1))):
        assert bodies.shares([dips, far], threshold) == pytest.approx(expected)
    by_simulations, by_time = bodies.thresholds_for([dips, far], .5, .05)
    assert 0 < by_simulations < 1e-300 and by_time == pytest.approx(.5)


def test_the_table_of_three_bodies(printed):
    """The start is a draw of seed 0; a circular orbit has 1.558 to 2.078."""
    rows = [line.split() for line in printed(
        'theory/three_body', '--simulations', 2, '--time', .2).splitlines()]
    assert rows[-1] == ['the', 'paper', '91.40%', '4.20%']
    assert 1.4 < float(rows[-2][0]) < float(rows[-3][0]) < 2.1


def test_the_rectangles_of_tns(load_tool, printed, write_record, tmp_path):
    found = load_tool('theory/tns_rectangles').rectangles(
        torch.tensor([1., 3., 2., 2.]), torch.tensor([1, 1, 2, 2]))
    assert found == {1: (.5, 3.), 2: (0., 2.)}
    path = write_record('a', torch.tensor([[1., 3.]]), blocks=['a', 'b'],
                        stage=[1, 1], position=[1, 2])
    printed('theory/tns_rectangles', path, tmp_path / 'a.png')
    assert (tmp_path / 'a.png').stat().st_size > 1000
