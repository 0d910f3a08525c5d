"""Colours, sizes and themes of figures, set in style.py alone."""
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from made_records import make_record
from matplotlib.colors import to_rgb

from stepnet_mm.visualization import depth_figure, save_figure, style

pytest.importorskip('matplotlib')

ROOT = Path(__file__).parents[2]
DRAWING = sorted(
    path for folder in ('stepnet_mm/visualization', 'tools')
    for path in (ROOT / folder).rglob('*.py')
    if 'matplotlib' in path.read_text()
    or 'stepnet_mm.visualization' in path.read_text())


def test_no_other_module_has_a_style():
    """Nor pyplot, which keeps its figures open and chooses a window."""
    assert len(DRAWING) > 10
    for path in DRAWING:
        if path.name != 'style.py':
            assert not re.search(
                r"#[0-9a-fA-F]{6}\b|rcParams|set_dpi|pyplot|color='(?!none)",
                path.read_text()), path


#: How colour-blind readers see linear RGB (Machado et al. 2009, severity 1).
EYES = dict(
    all=np.eye(3),
    protanopia=[[.152286, 1.052583, -.204868], [.114503, .786281, .099216],
                [-.003882, -.048116, 1.051998]],
    deuteranopia=[[.367322, .860646, -.227968], [.280085, .672501, .047413],
                  [-.011820, .042940, .968881]],
    tritanopia=[[1.255528, -.076749, -.178779], [-.078411, .930809, .147602],
                [.004733, .691367, .303900]])
XYZ = np.array([[.4339, .3762, .1899], [.2126, .7152, .0722],
                [.0178, .1095, .8727]])  # of white: 1, 1, 1


def lab(color, eyes):
    rgb = np.array(to_rgb(color))
    linear = np.where(
        rgb <= .04045, rgb / 12.92, ((rgb + .055) / 1.055)**2.4)
    x, y, z = np.cbrt(XYZ @ np.clip(np.array(eyes) @ linear, 0, 1))
    return np.array([116 * y, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize('theme', style.THEMES)
def test_colours_are_told_apart(theme):
    for eyes in EYES.values():
        with style.use(theme=theme):
            seen = [lab(style.color(i), eyes) for i in range(7)]
        apart = [np.linalg.norm(a - b)
                 for a, b in itertools.combinations(seen, 2)]
        assert min(apart) > 15  # 2.3 is the least that can be seen


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
    import matplotlib
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
    found = []
    for name in 'ab':
        path = tmp_path / f'{name}{suffix}'
        save_figure(depth_figure([make_record()]), path)
        found.append(path.read_bytes())
    assert found[0] == found[1]
