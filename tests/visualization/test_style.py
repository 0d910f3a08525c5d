"""Colours of figures and pages, scales, pictures and files."""
import re
from pathlib import Path

import cv2
import matplotlib
import pytest
from made_records import make_record

from stepnet_mm.visualization import as_image, depth_figure, save_figure, style

ROOT = Path(__file__).parents[2]


def test_pages_have_the_colours_of_figures():
    rules = (ROOT / 'tools/analysis/templates/colors.css').read_text()
    found = dict(re.findall(r'--(\w+): (#\w+);',
                            rules.partition('@media screen')[0]))
    for key, wanted in dict(paper=style.PAPER, ink=style.INK,
                            muted=style.MUTED, accent=style.color(0)).items():
        assert found[key] == wanted.lower()


def test_a_figure_keeps_its_style_to_itself():
    """Also where matplotlib makes ticks while it draws."""
    before = dict(matplotlib.rcParams, backend='agg')
    figure = depth_figure([make_record()])
    figure.canvas.draw()
    tick = figure.axes[0].yaxis.get_majorticklabels()[0]
    assert tick.get_color() == style.INK
    assert dict(matplotlib.rcParams, backend='agg') == before


@pytest.mark.parametrize('suffix', ['.png', '.svg', '.pdf'])
def test_the_same_records_give_the_same_file(tmp_path, suffix):
    paths = [tmp_path / f'{name}{suffix}' for name in 'ab']
    for path in paths:
        save_figure(depth_figure([make_record()]), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_wide_range_is_logarithmic():
    axes = style.new_figure(3, 3).subplots()
    style.set_scale(axes, 'y', 1, 100)
    axes.set_ylim(1, 100)
    assert {1, 2, 5, 10, 50} <= set(axes.get_yticks().round(6))


def test_image_and_file(tmp_path):
    figure = style.new_figure(3, 2)
    figure.set_facecolor((1, 0, 0))
    image = as_image(figure)
    assert image.shape == (2 * figure.dpi, 3 * figure.dpi, 3)
    assert image.flags.writeable and (image == [255, 0, 0]).all()
    path = tmp_path / 'a' / 'b' / 'figure'
    save_figure(figure, path)
    assert cv2.imread(f'{path}.png').shape[2] == 3


def test_methods_have_their_own_colours_where_all_are_known():
    known = style.looks(['SE', 'plain'])
    assert [own['color'] for own in known] == [
        style.METHODS['se'], style.METHODS['plain']]
    assert [own['color'] for own in style.looks(['plain', 'mine'])
            ] == style.COLORS[:2]
