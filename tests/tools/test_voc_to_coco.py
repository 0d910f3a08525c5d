"""A dataset in Pascal VOC's form becomes COCO files."""
import json

import pytest

OBJECT = '''<object><name>{}</name><difficult>{}</difficult><bndbox>
<xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>
'''


@pytest.fixture
def voc(tmp_path):
    """b, with three objects, is named before a, with none."""
    root = tmp_path / 'voc'
    objects = dict(a=[], b=[('dog', 0, 5, 6, 15, 26), ('cat', 1, 1, 1, 3, 2),
                            ('cat', 0, 4, 4, 4, 9)])
    for folder in ('Annotations', 'JPEGImages', 'ImageSets/Main'):
        (root / folder).mkdir(parents=True)
    for name, found in objects.items():
        (root / f'JPEGImages/{name}.jpg').write_bytes(name.encode())
        (root / f'Annotations/{name}.xml').write_text(
            '<annotation><size><width>40</width><height>30</height></size>'
            + ''.join(OBJECT.format(*each) for each in found)
            + '</annotation>')
    (root / 'ImageSets/Main/train.txt').write_text('b\na\n')
    return root


def test_images_boxes_and_classes(tool, voc, tmp_path):
    out = tmp_path / 'out'
    tool('voc_to_coco', voc, out, '--classes', 'cat', 'dog', '--splits',
         'train')
    assert json.loads((out / 'train.json').read_text()) == dict(
        images=[
            dict(id=1, file_name='a.jpg', width=40, height=30),
            dict(id=2, file_name='b.jpg', width=40, height=30),
        ],
        annotations=[
            dict(id=1, image_id=2, category_id=2, bbox=[5., 6., 10., 20.],
                 area=200., iscrowd=0),
            dict(id=2, image_id=2, category_id=1, bbox=[1., 1., 2., 1.],
                 area=2., iscrowd=1),
        ],
        categories=[dict(id=1, name='cat'), dict(id=2, name='dog')])
    assert (out / 'images/b.jpg').read_bytes() == b'b'
    with pytest.raises(ValueError, match='b.xml: object.name: expected one '
                       r"of \['dog'\], got 'cat'; add it to --classes"):
        tool('voc_to_coco', voc, tmp_path, '--classes', 'dog', '--splits',
             'train')
