import contextlib
import io

import cv2
import numpy as np
import pytest

from stepnet_mm.datasets import make_mini_coco
from stepnet_mm.datasets.mini_coco import CANVAS, CLASSES

# One worker: what these tests share is made once.
pytestmark = [
    pytest.mark.filterwarnings('ignore::DeprecationWarning:pycocotools'),
    pytest.mark.xdist_group('mini_coco')]

COCO = pytest.importorskip('pycocotools.coco').COCO
SPLITS = dict(train2017=40, val2017=20)


def load(root, split):
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(str(root / 'annotations' / f'instances_{split}.json'))


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp('mini_coco')
    make_mini_coco(root, **{k[:-4]: n for k, n in SPLITS.items()})
    return root


@pytest.fixture(scope='module', params=SPLITS)
def split(request):
    return request.param


@pytest.fixture(scope='module')
def coco(root, split):
    return load(root, split)


def single(coco):
    """Annotations of single objects."""
    return coco.loadAnns(coco.getAnnIds(iscrowd=False))


def contents(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob('*') if path.is_file()
    }


def small(root, **kwargs):
    make_mini_coco(root, **{**dict(train=4, val=3, size=64), **kwargs})
    return contents(root)


def test_the_same_seed_gives_the_same_files_and_another_others(tmp_path):
    first = small(tmp_path / 'a')
    assert len(first) == 4 + 3 + 2
    assert first == small(tmp_path / 'b') == small(tmp_path / 'a')
    other = small(tmp_path / 'c', seed=1)
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)
    name = '000000000001.jpg'
    assert first[f'train2017/{name}'] != first[f'val2017/{name}']


def test_images_are_those_of_the_annotation_file(root, split, coco):
    images = coco.loadImgs(coco.getImgIds())
    assert len(images) == SPLITS[split]
    names = sorted(path.name for path in (root / split).iterdir())
    assert names == sorted(image['file_name'] for image in images)
    for image in images[:5]:
        pixels = cv2.imread(str(root / split / image['file_name']))
        assert pixels.shape == (image['height'], image['width'], 3)
        assert image['height'] == image['width'] == CANVAS
        assert pixels.std() > 5


def test_the_classes_the_empty_image_the_crowd_and_the_ids(coco):
    names = [c['name'] for c in coco.loadCats(coco.getCatIds())]
    assert tuple(names) == CLASSES
    used = {entry['category_id'] for entry in single(coco)}
    assert used == set(coco.getCatIds())
    empty = [i for i in coco.getImgIds() if not coco.getAnnIds(imgIds=i)]
    assert empty == [2]
    crowds = coco.loadAnns(coco.getAnnIds(iscrowd=True))
    assert [crowd['image_id'] for crowd in crowds] == [3]
    assert sorted(coco.anns) == list(range(1, len(coco.anns) + 1))
    assert sorted(coco.imgs) == list(range(1, len(coco.imgs) + 1))


def test_small_medium_and_large_areas(coco):
    areas = np.array([entry['area'] for entry in single(coco)])
    shares = np.histogram(areas, [0, 32**2, 96**2, np.inf])[0] / len(areas)
    assert (shares > .05).all()


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


def test_the_crowd_decodes_to_its_area_and_box(coco):
    crowd, = coco.loadAnns(coco.getAnnIds(iscrowd=True))
    mask = coco.annToMask(crowd)
    rows, columns = np.nonzero(mask)
    assert mask.shape == (CANVAS, CANVAS)
    assert mask.sum() == crowd['area'] > 0
    assert crowd['bbox'] == [columns.min(), rows.min(),
                             np.ptp(columns) + 1, np.ptp(rows) + 1]
