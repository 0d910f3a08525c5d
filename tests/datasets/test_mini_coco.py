import contextlib
import io

import numpy as np
import pytest

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.datasets.mini_coco import CANVAS, CLASSES

# One worker: what these tests share is made once.
pytestmark = [
    pytest.mark.filterwarnings('ignore::DeprecationWarning:pycocotools'),
    pytest.mark.xdist_group('mini_coco')]

COCO = pytest.importorskip('pycocotools.coco').COCO


@pytest.fixture(scope='module')
def coco(tmp_path_factory):
    root = tmp_path_factory.mktemp('mini_coco')
    make_mini_coco(root, train=40, val=3)
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(root / 'annotations/instances_train2017.json'))


def single(coco):
    """Annotations of single objects."""
    return coco.loadAnns(coco.getAnnIds(iscrowd=False))


def test_the_same_seed_gives_the_same_files_and_another_others(tmp_path):
    def drawn(folder, **kwargs):
        make_mini_coco(tmp_path / folder, train=4, val=3, size=64, **kwargs)
        return {str(path.relative_to(tmp_path / folder)): path.read_bytes()
                for path in (tmp_path / folder).rglob('*') if path.is_file()}

    first = drawn('a')
    assert len(first) == 4 + 3 + 2
    assert first == drawn('b') == drawn('a')
    other = drawn('c', seed=1)
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)
    name = '000000000001.jpg'
    assert first[f'train2017/{name}'] != first[f'val2017/{name}']


def test_the_classes_the_empty_image_the_crowd_and_the_ids(coco):
    names = [c['name'] for c in coco.loadCats(coco.getCatIds())]
    assert tuple(names) == CLASSES
    used = {entry['category_id'] for entry in single(coco)}
    assert used == set(coco.getCatIds())
    assert {i['height'] for i in coco.imgs.values()} == {CANVAS}
    empty = [i for i in coco.getImgIds() if not coco.getAnnIds(imgIds=i)]
    assert empty == [2]
    assert sorted(coco.anns) == list(range(1, len(coco.anns) + 1))
    assert sorted(coco.imgs) == list(range(1, len(coco.imgs) + 1))
    crowd, = coco.loadAnns(coco.getAnnIds(iscrowd=True))
    assert crowd['image_id'] == 3
    mask = coco.annToMask(crowd)
    rows, columns = np.nonzero(mask)
    assert mask.sum() == crowd['area'] > 0
    assert crowd['bbox'] == [columns.min(), rows.min(),
                             np.ptp(columns) + 1, np.ptp(rows) + 1]


def test_boxes_and_areas_are_those_of_the_polygons(coco):
    boxes = np.array([entry['bbox'] for entry in coco.anns.values()])
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2:] > 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= CANVAS + .011).all()
    for entry in single(coco):
        corners = np.array(entry['segmentation'][0]).reshape(-1, 2)
        x0, y0, width, height = entry['bbox']
        assert corners.min(0) == pytest.approx([x0, y0], abs=.011)
        assert np.ptp(corners, 0) == pytest.approx([width, height], abs=.021)
        area = coco.annToMask(entry).sum()
        assert area == pytest.approx(entry['area'], abs=width + height)
    areas = np.array([entry['area'] for entry in single(coco)])
    shares = np.histogram(areas, [0, 32**2, 96**2, np.inf])[0] / len(areas)
    assert (shares > .05).all()
