"""Figures by one hand: colours, sizes, themes, and nobody else sets any."""
import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from made_records import make_record

from stepnet_mm.visualization import depth_figure, save_figure, style

pytest.importorskip('matplotlib')

ROOT = Path(__file__).parents[2]
DRAWING = sorted(
    path for folder in ('stepnet_mm/visualization', 'tools')
    for path in (ROOT / folder).rglob('*.py')
    if 'matplotlib' in path.read_text() or 'visualization' in str(path)
    or 'stepnet_mm.visualization' in path.read_text())
#: What style.py decides. A number or a name there is somebody's own choice.
OWN = {'color', 'c', 'facecolor', 'edgecolor', 'ecolor', 'markeredgecolor',
       'markerfacecolor', 'foreground', 'fontsize', 'size', 'linewidth', 'lw',
       'markersize', 'ms', 'dpi', 'fontfamily'}
#: Words that are no choice of one's own: relative sizes, no line, no fill.
RELATIVE = {'small', 'medium', 'none', 0}


def choices(tree):
    """Keyword and constant of each call that chooses a look by itself."""
    for call in ast.walk(tree):
        for word in getattr(call, 'keywords', []):
            if word.arg in OWN and isinstance(word.value, ast.Constant):
                yield word.arg, word.value.value


def drawn_elsewhere(text: str) -> list:
    """What of the style a module decides by itself."""
    tree = ast.parse(text)
    found = [choice for choice in choices(tree) if choice[1] not in RELATIVE]
    strings = [node.value for node in ast.walk(tree)
               if isinstance(node, ast.Constant)
               and isinstance(node.value, str)]
    found += [s for s in strings if re.fullmatch('#[0-9a-fA-F]{6,8}|C[0-9]',
                                                 s)]
    return found + re.findall(r'rcParams|rc_file|set_dpi|plt\.', text)


def test_no_other_module_has_a_style():
    # But the block, which is drawn for a width of its own.
    own = {'draw_block': [('dpi', 230)]}
    assert len(DRAWING) > 15
    for path in DRAWING:
        found = drawn_elsewhere(path.read_text())
        if path.name != 'style.py':
            assert found == own.get(path.stem, []), path


@pytest.mark.parametrize('text', [
    "axes.plot(x, y, color='gray')", "a = '#b0b0b0'",
    "rcParams['font.size'] = 3"])
def test_a_style_of_ones_own_is_seen(text):
    assert drawn_elsewhere(text)


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


def linear(color):
    rgb = np.array([int(color[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= .04045, rgb / 12.92, ((rgb + .055) / 1.055)**2.4)


def lab(color, eyes):
    x, y, z = np.cbrt(XYZ @ np.clip(np.array(eyes) @ linear(color), 0, 1))
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
def test_text_stands_out(name):
    def contrast(a, b):
        bright, dark = sorted((linear(a) @ XYZ[1], linear(b) @ XYZ[1]),
                              reverse=True)
        return (bright + .05) / (dark + .05)

    with style.use(theme=name):
        theme, colors = style.theme(), list(map(style.color, range(7)))
    for ground in (theme.paper, theme.panel):
        assert contrast(theme.ink, ground) > 7
        assert contrast(theme.muted, ground) > 4
    assert min(contrast(c, theme.paper) for c in colors) > 2


@pytest.mark.parametrize('name', style.THEMES)
def test_pages_have_the_same_colours(name):
    rules = (ROOT / 'tools/analysis/templates/colors.css').read_text()
    light, dark = rules.split('@media screen')
    found = dict(re.findall(r'--(\w+): (#\w+);', dark if name == 'dark'
                            else light))
    with style.use(theme=name):
        wanted = dict(style.theme()._asdict(), accent=style.color(0))
    assert found == {key: own.lower() for key, own in wanted.items()}


@style.styled
def test_lines_and_marks_differ_in_grey_print_too():
    for look, kind, every in ((style.look, 'linestyle', 28),
                              (style.mark, 'marker', 56)):
        looks = [tuple(look(i).items()) for i in range(every)]
        assert len(set(looks)) == every
        assert len({look(i)[kind] for i in range(4)}) == 4


def test_a_figure_keeps_its_style():
    import matplotlib
    before = dict(matplotlib.rcParams, backend='agg')
    with style.use('print', 'dark'):
        figure = depth_figure([make_record()])
    figure.canvas.draw()
    tick = figure.axes[0].yaxis.get_majorticklabels()[0]
    assert dict(matplotlib.rcParams, backend='agg') == before
    with style.use(theme='dark'):
        assert tick.get_color() == style.theme().ink
        assert figure.get_facecolor() == matplotlib.colors.to_rgba(
            style.theme().paper)


@pytest.mark.parametrize('key', ['size', 'theme'])
def test_unknown_styles(key):
    with pytest.raises(ValueError, match=key), style.use(**{key: 'poster'}):
        pass


@pytest.mark.parametrize('suffix', ['.png', '.svg', '.pdf'])
def test_the_same_records_give_the_same_file(tmp_path, suffix):
    found = []
    for name in 'ab':
        path = tmp_path / f'{name}{suffix}'
        save_figure(depth_figure([make_record()]), path)
        found.append(path.read_bytes())
    assert found[0] == found[1]
