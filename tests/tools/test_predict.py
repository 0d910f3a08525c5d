"""Pictures in, pictures out: a detector's boxes, a classifier's top five."""
import cv2
import numpy as np
import pytest
import torch
from equality import undrawn

from stepnet_mm.config import read_config
from stepnet_mm.launch.entry import build_model

CLASSIFIER = '''
_base_ = 'mmpretrain::resnet/resnet50_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', depth=34, base_channels=8,
                  stem_channels=8),
    head=dict(num_classes=2, in_channels=64, topk=(1, )))
'''
DETECTOR = '''
_base_ = {!r}
model = dict(backbone=dict(base_channels=8, stem_channels=8),
             neck=dict(in_channels=[8, 16, 32, 64]))
'''


@pytest.mark.parametrize('library', ['mmdet', 'mmpretrain'])
def test_a_picture_with_its_steps(library, printed, request, tmp_path):
    pytest.importorskip(library)
    config = tmp_path / 'config.py'
    config.write_text(CLASSIFIER if library == 'mmpretrain' else
                      DETECTOR.format(str(
                          request.config.rootpath / 'configs' /
                          'faster_rcnn_r34_stepnet_mini_coco.py')))
    with undrawn():
        model = build_model(read_config(str(config)), start=False)
    checkpoint = tmp_path / 'weights.pth'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(
        dataset_meta=dict(classes=('cat', 'a dog', 'tree')))), checkpoint)
    (tmp_path / 'in').mkdir()
    for name in 'a b.png', 'c.png', 'notes.txt':
        cv2.imwrite(str(tmp_path / 'in' / name.replace('txt', 'png')),
                    np.full((64, 64, 3), 90, 'uint8'))
    (tmp_path / 'in/notes.png').rename(tmp_path / 'in/notes.txt')
    out = printed('predict', config, checkpoint, tmp_path / 'in', '--out',
                  tmp_path / 'out', '--steps', '--device', 'cpu')
    drawn = [path for path in tmp_path.glob('out/**/*.png')
             if not path.stem.endswith('_steps')]
    assert sorted(path.name for path in drawn) == ['a b.png', 'c.png']
    assert all(cv2.imread(str(path)) is not None and str(path) in out
               for path in drawn)
    assert (tmp_path / 'out/c_steps.png').is_file()
    assert library == 'mmdet' or ' %, ' in out and 'a dog' in out


def test_no_picture(tool, tmp_path, capsys):
    with pytest.raises(SystemExit):
        tool('predict', 'config.py', 'weights.pth', tmp_path)
    assert 'expected a picture' in capsys.readouterr().err
