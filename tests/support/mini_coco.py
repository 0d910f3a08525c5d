"""The drawing of tools/make_mini_coco.py; tools/ itself is on no path."""
from pathlib import Path

from by_path import load

_TOOL = load(Path(__file__).parents[2] / 'tools/make_mini_coco.py')
CLASSES, make_mini_coco = _TOOL.CLASSES, _TOOL.make_mini_coco
