import runpy
import sys
from pathlib import Path

import cv2
import pytest
from legibility import cut_off, overlapping, written

from stepnet_mm.visualization import style

pytest.importorskip('matplotlib')

ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools' / 'theory' / 'draw_block.py'


def test_it_draws_light_and_dark(tmp_path, monkeypatch):
    for theme, low, high in (('light', 230, 255), ('dark', 0, 50)):
        path = str(tmp_path / f'{theme}.png')
        monkeypatch.setattr(
            sys, 'argv', ['draw_block', '--out', path, '--theme', theme])
        runpy.run_path(str(TOOL), run_name='__main__')
        image = cv2.imread(path, cv2.IMREAD_UNCHANGED)
        assert image.shape[1] >= 1600
        assert image[0, 0, 3] == 0  # round corners let the page through
        card = image[image.shape[0] // 2, 40]
        assert low < card[:3].mean() < high and card[3] == 255


def test_its_text_can_be_read():
    figure = style.styled(runpy.run_path(str(TOOL))['draw'])()
    texts = written(figure)
    shown = [text for text, _ in texts]
    assert {r'$x_{t+1} = x_t + \Delta t \otimes f(x_t)$',
            '$x_{t+1} = x_t + f(x_t)$'} <= {*shown}
    assert shown.count('$+$') == 3  # the adaptor sees a sum too
    assert not overlapping(texts) and not cut_off(figure, texts)
