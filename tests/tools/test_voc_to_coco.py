"""A dataset in Pascal VOC's form becomes COCO files."""
import json

import pytest


def test_images_boxes_and_classes(tool, voc, tmp_path):
    out = tmp_path / 'out'
    tool('voc_to_coco', voc, out, '--classes', 'cat', 'dog', '--splits',
         'train')
    assert json.loads((out / 'train.json').read_text()) == dict(
        images=[dict(id=i, file_name=f'{name}.jpg', width=40, height=40)
                for i, name in enumerate('ab', 1)],
        annotations=[
            dict(id=1, image_id=2, category_id=2, bbox=[5., 6., 10., 20.],
                 area=200., iscrowd=0),
            dict(id=2, image_id=2, category_id=1, bbox=[1., 1., 2., 1.],
                 area=2., iscrowd=1),
        ],
        categories=[dict(id=1, name='cat'), dict(id=2, name='dog')])
    assert (out / 'images/b.jpg').read_bytes() == (
        voc / 'JPEGImages/b.jpg').read_bytes()
    with pytest.raises(ValueError, match='b.xml: object.name: expected one '
                       r"of \['dog'\], got 'cat'; add it to --classes"):
        tool('voc_to_coco', voc, tmp_path, '--classes', 'dog', '--splits',
             'train')
