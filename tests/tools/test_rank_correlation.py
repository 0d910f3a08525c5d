import pandas as pd
import pytest
from rank_correlation import plot_correlation
from work_dirs import method_of

pytest.importorskip('matplotlib')


def runs(methods, seeds):
    return pd.DataFrame([
        dict(name=f'm{i}_seed{s}', tns=i + .1 * s, metric=90. - i)
        for i in range(methods) for s in range(seeds)])


def test_method_is_the_name_without_its_seed():
    assert method_of('se_seed12') == 'se'
    assert method_of('se_seed') == 'se_seed'
    assert method_of('a_seed1_b') == 'a_seed1_b'


def test_what_is_drawn():
    figure = plot_correlation(runs(3, 2), 'top-1', 'a title')
    axes, = figure.axes
    assert [points.get_label() for points in axes.collections] == [
        'm0', 'm1', 'm2'
    ]
    assert axes.collections[1].get_offsets().tolist() == [[1, 89], [1.1, 89]]
    assert axes.get_title() == 'a title'
    assert axes.get_ylabel() == 'top-1'
    assert [text.get_text() for text in figure.legends[0].get_texts()
            ] == ['m0', 'm1', 'm2']


def test_methods_look_different():
    figure = plot_correlation(runs(50, 1), 'top-1')
    looks = {(points.get_facecolor().tobytes(),
              points.get_paths()[0].vertices.tobytes())
             for points in figure.axes[0].collections}
    assert len(looks) == 50
