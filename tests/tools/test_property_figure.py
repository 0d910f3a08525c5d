import pytest
from made_records import make_record, named
from property_figure import property_figure

from stepnet_mm.stiffness import stiffness_proportion, stiffness_survival

pytest.importorskip('matplotlib')


def test_lines_are_the_shares():
    records = [named('plain', bad=2), named('SE', (3, 4), seed=1)]
    figure = property_figure(records, .3, 1.)
    assert 'plain: 2 of 40' in figure.get_suptitle()
    for axes, share in zip(figure.axes,
                           (stiffness_survival, stiffness_proportion)):
        assert 'M1, 0.3' in axes.get_title()
        first, second, mark = axes.lines
        assert mark.get_xdata() == [1., 1.]
        for line, record in zip((first, second), records):
            m1 = line.get_xdata()
            assert line.get_ydata() == pytest.approx(100 * share(
                record.nsi, record.stage, m1, [.3])[:, 0].numpy())


def test_it_ends_where_hardly_a_sample_is_stiff():
    line = property_figure([make_record(samples=400)]).axes[0].lines[0]
    assert line.get_ydata()[0] == 100
    assert 0 < line.get_ydata()[-1] < 2
    line = property_figure([make_record((1, 1))]).axes[0].lines[0]
    assert line.get_xdata()[-1] == 1  # stages of one block have no excess
