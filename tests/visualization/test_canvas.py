import ast
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from made_records import make_record, named

from stepnet_mm import visualization
from stepnet_mm.visualization import as_image, check_records, save_figure
from stepnet_mm.visualization.canvas import (
    labels,
    look,
    lost_note,
    name_lines,
    new_figure,
    panel_grid,
)

pytest.importorskip('matplotlib')
pytestmark = pytest.mark.core


@pytest.mark.parametrize('records, match', [
    ([], 'at least one stiffness record'),
    ([named('plain'), named('b', definition='output')],
     "one definition of NSI.*'residual': 'plain', 'output': 'b'"),
    ([named('plain'), named('empty', bad=40)],
     'empty: expected a sample .* got none in 40'),
], ids=['none', 'definitions', 'nothing finite'])
def test_records_that_do_not_go_together(records, match):
    with pytest.raises(ValueError, match=match):
        check_records(records)


def test_what_is_not_finite_is_left_out_and_counted():
    record = named('plain', bad=3)
    assert lost_note([record]) == '\nnot finite, left out: 3 of 40'
    assert lost_note([record, named('SE')]) == (
        '\nnot finite, left out: plain: 3 of 40')
    assert lost_note([named('SE')]) == ''


def test_a_name_that_several_have_is_numbered():
    records = [named('SE'), named('ECA'), named('SE')]
    assert labels(records) == ['SE (1)', 'ECA', 'SE (2)']


def test_models_look_different():
    assert len({tuple(look(i).values()) for i in range(28)}) == 28


@pytest.mark.parametrize('count, shape', [
    (1, (1, 1)), (2, (1, 2)), (4, (1, 4)), (6, (2, 3)), (9, (3, 3))
])
def test_panels_stand_side_by_side(count, shape):
    figure, panels = panel_grid(count, 2., 3.)
    assert len(panels) == count
    assert panels[0].get_gridspec().get_geometry() == shape
    assert figure.get_size_inches().tolist() == [2. * shape[1], 3. * shape[0]]


@pytest.mark.parametrize('count, length', [(1, 5), (12, 30), (3, 80)])
def test_the_legend_fits_into_the_figure(count, length):
    figure = new_figure(6.5, 4)
    figure.subplots()
    name_lines(figure, [f'{i}'.ljust(length, 'n') for i in range(count)])
    as_image(figure)
    box = figure.legends[0].get_window_extent()
    assert len(figure.legends[0].get_texts()) == count
    # A name of 80 letters is wider than this figure, and alone in its line.
    assert box.width <= figure.bbox.width or length == 80


def test_image():
    figure = new_figure(3, 2)
    figure.set_facecolor((1, 0, 0))
    image = as_image(figure)
    assert image.dtype == np.uint8 and image.flags.writeable
    assert image.shape == (2 * figure.dpi, 3 * figure.dpi, 3)
    assert (image == [255, 0, 0]).all()


def test_saving_makes_the_folder(tmp_path):
    path = tmp_path / 'a' / 'b' / 'figure.png'
    save_figure(new_figure(3, 2), path, dpi=50)
    assert cv2.imread(str(path)).shape == (100, 150, 3)
    save_figure(new_figure(3, 2), path.with_suffix('.svg'))
    assert '<svg' in path.with_suffix('.svg').read_text()
    with pytest.raises(ValueError, match='xyz'):
        save_figure(new_figure(3, 2), path.with_suffix('.xyz'))


@pytest.mark.parametrize('path', sorted(
    Path(visualization.__file__).parent.glob('*.py')), ids=lambda p: p.stem)
def test_matplotlib_is_imported_inside_functions_and_pyplot_never(path):
    tree = ast.parse(path.read_text())
    heads = [node for node in tree.body
             if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert 'matplotlib' not in ' '.join(map(ast.unparse, heads))
    assert not re.search(r'import .*pyplot|pyplot import', path.read_text())


def test_a_made_record_is_what_it_says():
    record = make_record(bad=2)
    assert record.nsi.isfinite().all(1).sum() == 38
    assert record.step.isfinite().all()


NAME = r'$\frac{$'


def test_a_dollar_sign_is_no_mathematics():
    figure = new_figure(3, 2)
    axes = figure.add_subplot(xscale='log', title=NAME, xlabel='$x$ $y')
    axes.plot([1, 1000], [0, 1], label=NAME)
    axes.legend()
    figure.suptitle(NAME)
    assert as_image(figure).std() > 0
    assert axes.title.get_text() == NAME
    assert not axes.xaxis.label.get_parse_math()


def test_ticks_keep_their_powers():
    figure = new_figure(3, 2)
    axes = figure.add_subplot(xscale='log', xlim=(1, 1e6))
    as_image(figure)
    labels = [label for label in axes.get_xticklabels()
              if 'mathdefault' in label.get_text()]
    assert labels and all(label.get_parse_math() for label in labels)
