import cv2
import pytest
from made_records import named

from stepnet_mm.visualization import as_image, check_records, save_figure
from stepnet_mm.visualization.style import new_figure, set_scale

pytest.importorskip('matplotlib')


@pytest.mark.parametrize('records, match', [
    ([], 'at least one stiffness record'),
    ([named('plain'), named('b', definition='output')],
     "one definition of NSI.*'residual': 'plain', 'output': 'b'"),
    ([named('plain'), named('empty', bad=40)],
     'empty: expected a sample .* got none in 40')])
def test_records_that_do_not_go_together(records, match):
    with pytest.raises(ValueError, match=match):
        check_records(records)


@pytest.mark.parametrize('low, high, some', [
    (0, 900, None), (1, 100, {1, 2, 5, 10, 50})])
def test_a_wide_range_is_logarithmic(low, high, some):
    figure = new_figure(3, 3)
    axes = figure.subplots()
    axes.plot([low, high], [0, 1])
    set_scale(axes, 'x', low, high)
    assert axes.get_xscale() == ('linear' if some is None else 'log')
    assert axes.get_yscale() == 'linear'
    if some is None:
        assert axes.get_xlim() == (0, 1.05 * high)
    else:
        as_image(figure)
        assert some <= set(axes.get_xticks().round(6))


def test_image_and_file(tmp_path):
    figure = new_figure(3, 2)
    figure.set_facecolor((1, 0, 0))
    image = as_image(figure)
    assert image.shape == (2 * figure.dpi, 3 * figure.dpi, 3)
    assert image.flags.writeable and (image == [255, 0, 0]).all()
    path = tmp_path / 'a' / 'b' / 'figure.png'
    save_figure(figure, path, dpi=50)
    assert cv2.imread(str(path)).shape == (100, 150, 3)


def test_a_dollar_sign_is_no_mathematics_but_in_a_power():
    name = r'$\frac{$'
    figure = new_figure(3, 2)
    axes = figure.add_subplot(
        xscale='log', xlim=(1, 1e6), title=name, xlabel='$x$ $y')
    axes.plot([1, 1000], [0, 1], label=name)
    axes.legend()
    figure.suptitle(name)
    assert as_image(figure).std() > 0
    assert axes.title.get_text() == name
    assert not axes.xaxis.label.get_parse_math()
    powers = [label for label in axes.get_xticklabels()
              if 'mathdefault' in label.get_text()]
    assert powers and all(label.get_parse_math() for label in powers)
