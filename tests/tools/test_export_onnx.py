import pytest
import torch

pytestmark = pytest.mark.core
pytest.importorskip('onnxruntime')

CLASSIFIER = '''
_base_ = 'mmpretrain::resnet/resnet50_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', base_channels=16, step='{step}'),
    head=dict(in_channels=512, topk=(1, )))
'''
DETECTOR = '''
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', step=dict(type='StepAdaptor',
                                               init_step=1), init_cfg=None))
'''


ATTENTION = '''
_base_ = '{root}/configs/self_attention/self_attention_{name}_cifar10.py'
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


SCALED = pytest.mark.skipif(
    torch.__version__.startswith('2.1.'),
    reason="torch 2.1's exporter of ONNX fails on the attention's scale")


@pytest.mark.parametrize('step', [
    'StepAdaptor', *(pytest.param(f'{name}Attention', marks=pytest.mark.long)
                     for name in ('SE', 'ECA', 'CBAM'))])
def test_a_whole_classifier(export, step):
    pytest.importorskip('mmpretrain')
    code, printed = export(
        CLASSIFIER.format(step=step), '--size', 64, 96, '--dynamic')
    assert code == 0
    assert 'of the largest value in onnxruntime' in printed.out


@pytest.mark.parametrize('name', [
    'stepnet', pytest.param('content', marks=SCALED),
    pytest.param('absolute', marks=SCALED)])
def test_self_attention(export, name, request):
    """Its width, 12, is no multiple of 8."""
    pytest.importorskip('mmpretrain')
    code, _ = export(ATTENTION.format(root=request.config.rootpath, name=name),
                     '--size', 32, 32)
    assert code == 0


def test_what_onnxruntime_cannot_run(export, request):
    pytest.importorskip('mmpretrain')
    code, _ = export(
        ATTENTION.format(root=request.config.rootpath, name='stepnet'),
        '--size', 32, 32, '--dynamic')
    assert 'expected a network that onnxruntime runs on' in code
    assert 'leave --dynamic out' in code


def test_a_detectors_backbone(export):
    pytest.importorskip('mmdet')
    code, _ = export(DETECTOR, '--part', 'backbone', '--size', 64, 96)
    assert code == 0


def test_a_whole_detector_is_refused(export):
    pytest.importorskip('mmdet')
    code, _ = export(DETECTOR)
    assert 'take --part backbone' in code


def test_a_difference_is_an_error(export, monkeypatch):
    pytest.importorskip('mmpretrain')
    real = torch.from_numpy
    monkeypatch.setattr(torch, 'from_numpy', lambda a: real(a) + 1)
    code, _ = export(CLASSIFIER.format(step='StepAdaptor'), '--size', 32, 32)
    assert code == 1


def test_nan_is_an_error(export, monkeypatch):
    pytest.importorskip('mmpretrain')
    real = torch.from_numpy
    monkeypatch.setattr(torch, 'from_numpy',
                        lambda a: real(a) * float('nan'))
    code, _ = export(CLASSIFIER.format(step='StepAdaptor'), '--size', 32, 32)
    assert code == 1
