"""Colours, sizes and themes of figures, scales, pictures and files."""
import re
from pathlib import Path

import cv2
import matplotlib
import pytest
from made_records import make_record

from stepnet_mm.visualization import (
    as_image,
    depth_figure,
    save_figure,
    style,
)

pytest.importorskip('matplotlib')
ROOT = Path(__file__).parents[2]


def test_no_other_module_has_a_style():
    """Nor pyplot, which keeps its figures open and chooses a window."""
    drawing = [
        path for folder in ('stepnet_mm/visualization', 'tools')
        for path in (ROOT / folder).rglob('*.py')
        if path.name != 'style.py' and re.search(
            'matplotlib|stepnet_mm.visualization', path.read_text())]
    assert len(drawing) > 5
    for path in drawing:
        assert not re.search(
            r"#[0-9a-fA-F]{6}\b|rcParams|set_dpi|pyplot|color='(?!none)",
            path.read_text()), path


@pytest.mark.parametrize('name', style.THEMES)
def test_pages_have_the_same_colours(name):
    rules = (ROOT / 'tools/analysis/templates/colors.css').read_text()
    light, dark = rules.split('@media screen')
    found = dict(re.findall(r'--(\w+): (#\w+);', dark if name == 'dark'
                            else light))
    with style.use(theme=name):
        wanted = dict(style.theme()._asdict(), accent=style.color(0))
    assert found == {key: own.lower() for key, own in wanted.items()}


def test_a_figure_keeps_its_style():
    before = dict(matplotlib.rcParams, backend='agg')
    with style.use('print', 'dark'):
        figure = depth_figure([make_record()])
    figure.canvas.draw()
    assert figure.get_figheight() == pytest.approx(.8 * 4.2)
    tick = figure.axes[0].yaxis.get_majorticklabels()[0]
    assert dict(matplotlib.rcParams, backend='agg') == before
    with style.use(theme='dark'):
        assert tick.get_color() == style.theme().ink
        assert figure.get_facecolor() == matplotlib.colors.to_rgba(
            style.theme().paper)


@pytest.mark.parametrize('suffix', ['.png', '.svg', '.pdf'])
def test_the_same_records_give_the_same_file(tmp_path, suffix):
    paths = [tmp_path / f'{name}{suffix}' for name in 'ab']
    for path in paths:
        save_figure(depth_figure([make_record()]), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize('low, high, some', [
    (0, 900, None), (1, 100, {1, 2, 5, 10, 50})])
def test_a_wide_range_is_logarithmic(low, high, some):
    figure = style.new_figure(3, 3)
    axes = figure.subplots()
    axes.plot([low, high], [0, 1])
    style.set_scale(axes, 'x', low, high)
    assert axes.get_yscale() == 'linear'
    if some is None:
        assert axes.get_xlim() == (0, 1.05 * high)
    else:
        as_image(figure)
        assert some <= set(axes.get_xticks().round(6))


def test_image_and_file(tmp_path):
    figure = style.new_figure(3, 2)
    figure.set_facecolor((1, 0, 0))
    image = as_image(figure)
    assert image.shape == (2 * figure.dpi, 3 * figure.dpi, 3)
    assert image.flags.writeable and (image == [255, 0, 0]).all()
    path = tmp_path / 'a' / 'b' / 'figure.png'
    save_figure(figure, path, dpi=50)
    assert cv2.imread(str(path)).shape == (100, 150, 3)


def test_a_dollar_sign_is_no_mathematics_but_in_a_power():
    figure = style.new_figure(3, 2)
    axes = figure.add_subplot(xscale='log', xlim=(1, 1e6), title=r'$\frac{$')
    assert as_image(figure).std() > 0
    assert not axes.title.get_parse_math()
    powers = [label for label in axes.get_xticklabels()
              if 'mathdefault' in label.get_text()]
    assert powers and all(label.get_parse_math() for label in powers)
