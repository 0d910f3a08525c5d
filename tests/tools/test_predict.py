"""Pictures in, pictures out: boxes, a classifier's top five, segments."""
import cv2
import numpy as np
import pytest
import torch
from equality import undrawn

from stepnet_mm.config import read_config
from stepnet_mm.config.reading import find_config
from stepnet_mm.launch.entry import build_model

CLASSIFIER = '''
_base_ = 'mmpretrain::resnet/resnet50_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', depth=34, base_channels=8,
                  stem_channels=8),
    head=dict(num_classes=2, in_channels=64, topk=(1, )))
'''
SEGMENTOR = '''
_base_ = {!r}
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    pretrained=None,
    backbone=dict(type='StepResNetV1c', depth=34, base_channels=8,
                  stem_channels=8),
    decode_head=dict(in_channels=64, channels=8, num_classes=3),
    auxiliary_head=dict(in_channels=32, channels=8, num_classes=3))
'''
DETECTOR = '''
_base_ = {!r}
model = dict(backbone=dict(base_channels=8, stem_channels=8),
             neck=dict(in_channels=[8, 16, 32, 64]))
'''


def text_of(library, root):
    if library == 'mmpretrain':
        return CLASSIFIER
    if library == 'mmseg':
        return SEGMENTOR.format(str(find_config(
            'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py')))
    return DETECTOR.format(
        str(root / 'configs/faster_rcnn_r34_stepnet_mini_coco.py'))


@pytest.mark.parametrize('library', ['mmdet', 'mmpretrain', 'mmseg'])
def test_a_picture_with_its_steps(library, printed, request, tmp_path):
    pytest.importorskip(library)
    config = tmp_path / 'config.py'
    config.write_text(text_of(library, request.config.rootpath))
    with undrawn():
        model = build_model(read_config(str(config)), start=False)
    checkpoint = tmp_path / 'weights.pth'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(
        dataset_meta=dict(classes=('cat', 'a dog', 'tree'),
                          palette=[[9, 9, 9]] * 3))), checkpoint)
    (tmp_path / 'in').mkdir()
    for name in 'a b.png', 'c.png', 'notes.txt':
        cv2.imwrite(str(tmp_path / 'in' / name.replace('txt', 'png')),
                    np.full((64, 64, 3), 90, 'uint8'))
    (tmp_path / 'in/notes.png').rename(tmp_path / 'in/notes.txt')
    out = printed('predict', config, checkpoint, tmp_path / 'in', '--out',
                  tmp_path / 'out', '--steps', '--device', 'cpu')
    drawn = [path for path in tmp_path.glob('out/**/*.png')
             if not path.stem.endswith(('_steps', '_pred'))]
    assert sorted(path.name for path in drawn) == ['a b.png', 'c.png']
    assert all(cv2.imread(str(path)) is not None and str(path) in out
               for path in drawn)
    assert (tmp_path / 'out/c_steps.png').is_file()
    assert library != 'mmpretrain' or ' %, ' in out and 'a dog' in out


def test_no_picture(tool, tmp_path, capsys):
    with pytest.raises(SystemExit):
        tool('predict', 'config.py', 'weights.pth', tmp_path)
    assert 'expected a picture' in capsys.readouterr().err
