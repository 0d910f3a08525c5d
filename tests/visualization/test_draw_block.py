import runpy
from pathlib import Path

import cv2
import pytest
from legibility import cut_off, overlapping, written

from stepnet_mm.visualization import save_figure, style

pytest.importorskip('matplotlib')

ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools' / 'theory' / 'draw_block.py'


def test_what_is_drawn(tmp_path):
    figure = style.styled(runpy.run_path(str(TOOL))['draw'])()
    texts = written(figure)
    shown = [text for text, _ in texts]
    assert {r'$x_{t+1} = x_t + \Delta t \otimes f(x_t)$',
            '$x_{t+1} = x_t + f(x_t)$'} <= {*shown}
    assert shown.count('$+$') == 3  # the adaptor sees a sum too
    assert not overlapping(texts) and not cut_off(figure, texts)
    save_figure(figure, tmp_path / 'block.png')
    image = cv2.imread(str(tmp_path / 'block.png'), cv2.IMREAD_UNCHANGED)
    assert image[0, 0, 3] == 0  # round corners let the page through
    assert image[image.shape[0] // 2, 40, 3] == 255
