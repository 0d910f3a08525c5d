import contextlib
import io

import numpy as np
import pytest

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.datasets.mini_coco import CANVAS, CLASSES

pytestmark = pytest.mark.filterwarnings(
    'ignore::DeprecationWarning:pycocotools')
COCO = pytest.importorskip('pycocotools.coco').COCO


def test_the_same_seed_gives_the_same_files_and_another_others(tmp_path):
    def drawn(folder, **kwargs):
        make_mini_coco(tmp_path / folder, train=4, val=3, size=64, **kwargs)
        return {str(path.relative_to(tmp_path / folder)): path.read_bytes()
                for path in (tmp_path / folder).rglob('*') if path.is_file()}

    first, other = drawn('a'), drawn('b', seed=1)
    assert len(first) == 4 + 3 + 2
    assert first == drawn('c')
    assert all(first[name] != other[name] for name in first)
    name = '000000000001.jpg'
    assert first[f'train2017/{name}'] != first[f'val2017/{name}']


def test_annotations_are_those_of_the_polygons(tmp_path):
    make_mini_coco(tmp_path, train=40, val=3)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(tmp_path / 'annotations/instances_train2017.json'))
    names = [c['name'] for c in coco.loadCats(coco.getCatIds())]
    assert tuple(names) == CLASSES
    assert [i for i in coco.getImgIds() if not coco.getAnnIds(imgIds=i)] == [2]
    assert sorted(coco.anns) == list(range(1, len(coco.anns) + 1))
    crowd, = coco.loadAnns(coco.getAnnIds(iscrowd=True))
    mask = coco.annToMask(crowd)
    rows, columns = np.nonzero(mask)
    assert crowd['image_id'] == 3 and mask.sum() == crowd['area'] > 0
    assert crowd['bbox'] == [columns.min(), rows.min(),
                             np.ptp(columns) + 1, np.ptp(rows) + 1]
    areas = []
    for entry in coco.loadAnns(coco.getAnnIds(iscrowd=False)):
        corners = np.array(entry['segmentation'][0]).reshape(-1, 2)
        x0, y0, width, height = entry['bbox']
        assert corners.min(0) == pytest.approx([x0, y0], abs=.011)
        assert np.ptp(corners, 0) == pytest.approx([width, height], abs=.021)
        assert corners.min() >= 0 and corners.max() <= CANVAS + .011
        area = coco.annToMask(entry).sum()
        assert area == pytest.approx(entry['area'], abs=width + height)
        areas.append(entry['area'])
    shares = np.histogram(areas, [0, 32**2, 96**2, np.inf])[0] / len(areas)
    assert (shares > .05).all()
