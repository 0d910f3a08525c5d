import numpy as np
import pytest

pytest.importorskip('matplotlib')
from stepnet_mm.attention import AttentionRecord, LayerAttention  # noqa: E402
from stepnet_mm.visualization import (as_image,  # noqa: E402
                                      attention_map_figure,
                                      attention_path_figure,
                                      attention_range_figure)

pytestmark = pytest.mark.core


def point(place, shape):
    maps = np.zeros(shape, 'float32')
    maps[place] = 1
    return maps


def make_record(step=0, layers=2, size=(12, 16), place=(1, 2)):
    """Every head looks at one pixel; the second layer has fewer heads."""
    return AttentionRecord([
        LayerAttention(
            name=f'layers.{i}.attn',
            maps=np.stack([point(place, (6, 8))] * (3 - i)),
            query=(3, 4), distance=[3., 1., 2.][:3 - i], uniform=5.,
            pixel=(2., 2.), padding=(0, 0))
        for i in range(layers)
    ], np.full((*size, 3), 90, 'uint8'), size, 2, step, 'net')


def test_maps_by_layer_and_head_nearest_first():
    figure = attention_map_figure(make_record())
    rows = figure.axes
    assert [axes.get_ylabel() for axes in rows] == [
        'layers.0.attn', 'layers.1.attn']
    assert [text.get_text() for text in rows[0].texts] == [
        '2: 1.0 px', '3: 2.0 px', '1: 3.0 px']
    assert [len(axes.images) for axes in rows] == [3, 2]
    for image in rows[0].images:
        assert image.get_array().max() == image.get_array()[1, 2] == 1
    # Each map's frame, and its query.
    marks = [patch for patch in rows[0].patches if patch.get_width() == 1]
    lefts = [image.get_extent()[0] for image in rows[0].images]
    np.testing.assert_allclose(
        [(mark.get_x() - left, mark.get_y())
         for mark, left in zip(marks, lefts)], [(4, 3)] * 3)
    assert as_image(figure).std() > 5


def test_paths_in_pixels_of_the_image():
    records = [make_record(0), make_record(50, place=(5, 7))]
    figure = attention_path_figure(records)
    axes = figure.axes[0]
    assert len(figure.axes) == 2
    paths = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert len(paths) == 3
    for path in paths:
        np.testing.assert_allclose(path.get_xdata(), [5, 15])
        np.testing.assert_allclose(path.get_ydata(), [3, 11])
    query = axes.lines[-1]
    assert (query.get_xdata()[0], query.get_ydata()[0]) == (9, 7)
    assert 'iteration 0 to 50' in figure.get_suptitle()
    assert as_image(figure).std() > 5


def test_ranges_by_layer_and_over_the_iterations():
    assert len(attention_range_figure([make_record()]).axes) == 1
    figure = attention_range_figure([make_record(0), make_record(50)])
    by_layer, history = figure.axes
    mean = next(line for line in by_layer.lines if line.get_label() == 'mean')
    np.testing.assert_allclose(mean.get_ydata(), [2, 2])
    assert [list(line.get_xdata()) for line in history.lines] == [[0, 50]] * 2
    assert as_image(figure).std() > 5


@pytest.mark.parametrize('draw', [attention_path_figure,
                                  attention_range_figure])
def test_records_of_other_networks_are_told_apart(draw):
    with pytest.raises(ValueError, match='at least one'):
        draw([])
    for other in (make_record(9, layers=1), make_record(9, size=(24, 16))):
        with pytest.raises(ValueError, match='iteration 0 and .*iteration 9'):
            draw([make_record(), other])
