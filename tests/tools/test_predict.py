"""Pictures in, pictures out: boxes, a classifier's top five, segments."""
import cv2
import numpy as np
import pytest
import torch
from equality import undrawn

from stepnet_mm.config import read_config
from stepnet_mm.config.reading import find_config
from stepnet_mm.launch.entry import build_model


@pytest.fixture
def segmentor(tmp_path):
    pytest.importorskip('mmseg')
    base = find_config('mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py')
    path = tmp_path / 'segmentor.py'
    path.write_text(f'''
_base_ = {str(base)!r}
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    pretrained=None,
    backbone=dict(type='StepResNetV1c', depth=34, base_channels=8,
                  stem_channels=8),
    decode_head=dict(in_channels=64, channels=8, num_classes=3),
    auxiliary_head=dict(in_channels=32, channels=8, num_classes=3))
''')
    return path


@pytest.mark.parametrize('made, library', dict(
    detector='mmdet', classifier='mmpretrain', segmentor='mmseg').items())
def test_a_picture_with_its_steps(made, library, printed, request, tmp_path):
    pytest.importorskip(library)
    config = request.getfixturevalue(made)
    with undrawn():
        model = build_model(read_config(str(config)), start=False)
    checkpoint = tmp_path / 'weights.pth'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(
        dataset_meta=dict(classes=('cat', 'a dog', 'tree'),
                          palette=[[9, 9, 9]] * 3))), checkpoint)
    (tmp_path / 'in').mkdir()
    for name in 'a b.png', 'c.png':
        cv2.imwrite(str(tmp_path / 'in' / name),
                    np.full((64, 64, 3), 90, 'uint8'))
    (tmp_path / 'in/notes.txt').touch()
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
