#!/usr/bin/env python
r"""Convert a detection dataset from Pascal VOC's form to COCO's.

python tools/voc_to_coco.py BCCD_Dataset/BCCD data/blood_cells \
    --classes RBC WBC Platelets

Reads ImageSets/Main/SPLIT.txt, Annotations and JPEGImages; writes SPLIT.json
and copies the split's images into images/. Boxes without area are left out;
difficult ones become `iscrowd`, which training and evaluation ignore.
Coordinates stay as they are.
"""
import stepnet_mm.utils.interrupts  # Ctrl-C from here on

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

from stepnet_mm.utils.command_line import command_parser
from stepnet_mm.utils.files import atomic_write


def parse_args():
    parser = command_parser(__doc__)
    parser.add_argument('voc', type=Path, help='folder of the dataset')
    parser.add_argument('out', type=Path, help='folder to write into')
    parser.add_argument('--classes', nargs='+', required=True,
                        help='their names, in the order of their numbers')
    parser.add_argument('--splits', nargs='+',
                        default=['train', 'val', 'test'], help='their names')
    return parser.parse_args()


def convert(voc, split, classes):
    """A split as a COCO file has it, images sorted by name.

    Raises:
        ValueError: if an object is of another class.
    """
    names = (voc / f'ImageSets/Main/{split}.txt').read_text().split()
    images, annotations = [], []
    for number, name in enumerate(sorted(names), 1):
        path = voc / f'Annotations/{name}.xml'
        root = ElementTree.parse(path).getroot()
        images.append(dict(
            id=number, file_name=f'{name}.jpg',
            **{key: int(root.findtext(f'size/{key}'))
               for key in ('width', 'height')}))
        for item in root.iter('object'):
            kind = item.findtext('name')
            if kind not in classes:
                raise ValueError(f'{path}: object.name: expected one of '
                                 f'{classes}, got {kind!r}; add it to '
                                 '--classes')
            left, top, right, bottom = (
                float(item.findtext(f'bndbox/{edge}'))
                for edge in ('xmin', 'ymin', 'xmax', 'ymax'))
            width, height = right - left, bottom - top
            if width > 0 and height > 0:
                annotations.append(dict(
                    id=len(annotations) + 1, image_id=number,
                    category_id=classes.index(kind) + 1,
                    bbox=[left, top, width, height], area=width * height,
                    iscrowd=int(item.findtext('difficult', '0'))))
    categories = [dict(id=number, name=name)
                  for number, name in enumerate(classes, 1)]
    return dict(images=images, annotations=annotations, categories=categories)


def main():
    args = parse_args()
    (args.out / 'images').mkdir(parents=True, exist_ok=True)
    for split in args.splits:
        content = convert(args.voc, split, args.classes)
        for image in content['images']:
            shutil.copyfile(args.voc / 'JPEGImages' / image['file_name'],
                            args.out / 'images' / image['file_name'])
        with atomic_write(args.out / f'{split}.json') as file:
            file.write(json.dumps(content).encode())
        print(f'{split}: {len(content["images"])} images, '
              f'{len(content["annotations"])} boxes')


if __name__ == '__main__':
    main()
