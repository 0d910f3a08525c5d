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


def test_it_writes_light_and_dark(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['draw_block', '--out',
                                      str(tmp_path / 'a')])
    runpy.run_path(str(TOOL), run_name='__main__')
    light, dark = (cv2.imread(str(tmp_path / name), cv2.IMREAD_UNCHANGED)
                   for name in ('a.png', 'a_dark.png'))
    assert light.shape == dark.shape and light.shape[1] >= 1600
    for image, low, high in ((light, 230, 255), (dark, 0, 50)):
        assert image[0, 0, 3] == 0  # round corners let the page through
        card = image[image.shape[0] // 2, 40]
        assert low < card[:3].mean() < high and card[3] == 255
    for name in ('a.svg', 'a_dark.svg'):
        assert '<svg' in (tmp_path / name).read_text()


def test_its_text_can_be_read():
    figure = style.styled(runpy.run_path(str(TOOL))['draw'])()
    texts = written(figure)
    assert {r'$x_{t+1} = x_t + \Delta t \otimes f(x_t)$',
            '$x_{t+1} = x_t + f(x_t)$'} <= {text for text, _ in texts}
    assert not overlapping(texts) and not cut_off(figure, texts)
