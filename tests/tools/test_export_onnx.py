import pytest
import torch

pytest.importorskip('onnxruntime')

CLASSIFIER = '''
_base_ = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', base_channels=16, in_channels=1),
    head=dict(in_channels=128, topk=(1, )))
'''
DETECTOR = '''
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', depth=18, init_cfg=None,
                  step=dict(type='StepAdaptor', init_step=1)),
    neck=dict(in_channels=[64, 128, 256, 512]))
'''


ATTENTION = '''
_base_ = '{root}/configs/self_attention/self_attention_stepnet_cifar10.py'
model = dict(
    backbone=dict(embed_dims=12, num_layers=1, num_heads=3,
                  feedforward_channels=8),
    head=dict(in_channels=12, num_classes=2))
data_preprocessor = dict(num_classes=2)
'''


@pytest.fixture
def export(tool, tmp_path, capsys):

    def run(config, *arguments):
        path = tmp_path / 'config.py'
        path.write_text(config)
        with pytest.raises(SystemExit) as ended:
            tool('export_onnx', path, '--out', tmp_path / 'model.onnx',
                 *arguments)
        return ended.value.code, capsys.readouterr()

    return run


@pytest.mark.core
def test_a_whole_classifier(export):
    pytest.importorskip('mmpretrain')
    code, printed = export(CLASSIFIER, '--size', 64, 96, '--dynamic')
    assert code == 0
    assert 'of the largest value in onnxruntime' in printed.out


@pytest.mark.parametrize('off', [1, float('nan')])
def test_a_difference_is_an_error(export, request, monkeypatch, off):
    pytest.importorskip('mmpretrain')
    real = torch.from_numpy
    monkeypatch.setattr(torch, 'from_numpy', lambda a: real(a) + off)
    code, _ = export(ATTENTION.format(root=request.config.rootpath),
                     '--size', 32, 32)
    assert code == 1


def test_what_onnxruntime_cannot_run(export, request):
    pytest.importorskip('mmpretrain')
    code, _ = export(ATTENTION.format(root=request.config.rootpath),
                     '--size', 32, 32, '--dynamic')
    assert 'expected a network that onnxruntime runs on' in code
    assert 'leave --dynamic out' in code


@pytest.mark.long
@pytest.mark.core
def test_a_detectors_backbone(export):
    pytest.importorskip('mmdet')
    code, _ = export(DETECTOR)
    assert 'take --part backbone' in code
    code, _ = export(DETECTOR, '--part', 'backbone', '--size', 64, 96)
    assert code == 0
