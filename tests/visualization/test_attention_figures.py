import numpy as np
import pytest
from made_records import make_attention_record as make_record

from stepnet_mm.visualization import attention_figures


def test_maps_by_layer_and_head_nearest_first():
    figure = attention_figures([make_record()])['maps']
    assert [part.get_suptitle() for part in figure.subfigs] == [
        'layer 1: layers.0.attn', 'layer 2: layers.1.attn']
    first, second = [[axes for axes in part.axes if axes.images]
                     for part in figure.subfigs]
    assert [axes.get_title() for axes in first] == [
        '2: 1.0 px', '3: 2.0 px', '1: 3.0 px']
    assert len(second) == 2
    for axes in first:
        shown = axes.images[0].get_array()
        assert shown.max() == shown[1, 2] == 1
        np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[4, 3]])


def test_ranges_in_pixels_of_the_image():
    figure = attention_figures([make_record(0), make_record(50)])['range']
    by_layer, history = figure.axes
    mean = next(line for line in by_layer.lines if line.get_label() == 'mean')
    np.testing.assert_allclose(mean.get_ydata(), [2, 2])
    assert [list(line.get_xdata()) for line in history.lines] == [[0, 50]] * 2


def test_records_of_other_networks_are_told_apart():
    for changes, key in ((dict(layers=1), 'layers'),
                         (dict(size=(24, 16)), 'size')):
        with pytest.raises(ValueError, match=f'one {key}, .* 0 and 9;'):
            attention_figures([make_record(), make_record(9, **changes)])
