import numpy as np
import pytest
from mini_coco import CLASSES, make_mini_coco

pytestmark = pytest.mark.filterwarnings(
    'ignore::DeprecationWarning:pycocotools')
COCO = pytest.importorskip('pycocotools.coco').COCO


def test_annotations_are_those_of_the_polygons(tmp_path):
    make_mini_coco(tmp_path, train=20, val=3)
    coco = COCO(str(tmp_path / 'annotations/instances_train2017.json'))
    names = [c['name'] for c in coco.loadCats(coco.getCatIds())]
    assert tuple(names) == CLASSES
    assert [i for i in coco.getImgIds() if not coco.getAnnIds(imgIds=i)] == [2]
    assert len(coco.getAnnIds(iscrowd=True)) == 1
    for entry in coco.anns.values():
        mask = coco.annToMask(entry)
        rows, columns = np.nonzero(mask)
        width, height = entry['bbox'][2:]
        assert mask.sum() == pytest.approx(entry['area'], abs=width + height)
        assert [columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows)
                + 1] == pytest.approx(entry['bbox'], abs=2)
