import numpy as np
import pytest
from made_records import make_attention_record as make_record

pytest.importorskip('matplotlib')
from stepnet_mm.visualization import attention_figures  # noqa: E402


def test_maps_by_layer_and_head_nearest_first():
    figure = attention_figures([make_record()])['maps']
    rows = figure.axes
    assert [axes.get_title('left') for axes in rows] == [
        'layer 1: layers.0.attn', 'layer 2: layers.1.attn']
    assert [text.get_text() for text in rows[0].texts] == [
        '2: 1.0 px', '3: 2.0 px', '1: 3.0 px']
    assert [len(axes.images) for axes in rows] == [3, 2]
    for image in rows[0].images:
        assert image.get_array().max() == image.get_array()[1, 2] == 1
    marks = [line.get_xydata()[0] for line in rows[0].lines]
    lefts = [image.get_extent()[0] for image in rows[0].images]
    np.testing.assert_allclose(
        [(x - left, y) for (x, y), left in zip(marks, lefts)],
        [(4.5, 3.5)] * 3, atol=1e-6)


def test_paths_and_ranges_in_pixels_of_the_image():
    figures = attention_figures([make_record(0),
                                 make_record(50, place=(5, 7))])
    axes, _ = figures['paths'].axes
    paths = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert len(paths) == 3
    for path in paths:
        np.testing.assert_allclose(path.get_xdata(), [5, 15])
        np.testing.assert_allclose(path.get_ydata(), [3, 11])
    query = axes.lines[-1]
    assert (query.get_xdata()[0], query.get_ydata()[0]) == (9, 7)
    by_layer, history = figures['range'].axes
    mean = next(line for line in by_layer.lines if line.get_label() == 'mean')
    np.testing.assert_allclose(mean.get_ydata(), [2, 2])
    assert [list(line.get_xdata()) for line in history.lines] == [[0, 50]] * 2


def test_records_of_other_networks_are_told_apart():
    for changes, key in ((dict(layers=1), 'layers'), (dict(color=8), 'image'),
                         (dict(size=(24, 16)), 'size')):
        with pytest.raises(ValueError, match=f'one {key}, .* 0 and 9;'):
            attention_figures([make_record(), make_record(9, **changes)])
