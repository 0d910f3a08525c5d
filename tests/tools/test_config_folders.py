"""Each tool on a config of each folder under configs/, cut down."""
import pytest
from mmengine.registry import DefaultScope

pytestmark = pytest.mark.core

SHOWN = 'analysis/{}'.format
#: Folder -> a config of it, its backbone cut down, channels at its end.
CLASSIFIERS = dict(
    imagenet=('resnet50_stepnet_imagenet', 'base_channels=4, stem_channels=4',
              128),
    resnet164=('resnet164_plain_cifar10', 'depth=29', 256),
    self_attention=('self_attention_stepnet_cifar10',
                    'embed_dims=12, num_layers=2, num_heads=3, '
                    'feedforward_channels=8', 12),
    vit=('vit_stepnet_cifar10',
         'arch=dict(embed_dims=16, num_layers=3, num_heads=2, '
         'feedforward_channels=16)', 16))
CLASSIFIER = '''
_base_ = '{configs}/{folder}/{name}.py'
model = dict(
    backbone=dict({backbone}),
    head=dict(in_channels={channels}, num_classes=2))
data_preprocessor = dict(num_classes=2)
data = dict(
    _delete_=True, type='CustomDataset', data_root='{data}',
    pipeline=[dict(type='LoadImageFromFile'),
              dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')])
loader = dict(batch_size=4, num_workers=0, persistent_workers=False)
train_dataloader = dict(**loader, dataset=dict(**data, data_prefix='train'))
val_dataloader = dict(**loader, dataset=dict(**data, data_prefix='val'))
test_dataloader = val_dataloader
val_evaluator = dict(topk=(1, ))
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=1)
'''


@pytest.fixture(params=[
    pytest.param(name, marks=[pytest.mark.long]
                 if name in ('', 'imagenet') else [])
    for name in ('', *CLASSIFIERS)])
def config(request, tmp_path):
    """A config of that folder, and the options that find its data."""
    pytest.importorskip('mmpretrain' if request.param else 'mmdet')
    if not request.param:
        path, data = request.getfixturevalue('detector')
        return path, ('--data-root', data), request.param
    path = request.getfixturevalue('classifier')
    name, backbone, channels = CLASSIFIERS[request.param]
    path.write_text(CLASSIFIER.format(
        configs=request.config.rootpath / 'configs', folder=request.param,
        name=name, backbone=backbone, channels=channels,
        data=tmp_path / 'images'))
    return path, (), request.param


@pytest.fixture
def ends(tool):
    """ends('train', ...): the code of a tool that exits, 0 of one that ends"""

    def run(*arguments):
        DefaultScope._instance_dict.clear()  # as in a process of its own
        try:
            tool(*arguments)
        except SystemExit as ended:
            return ended.code or 0
        return 0

    return run


def test_the_network_is_measured_and_exported(ends, config, tmp_path):
    pytest.importorskip('onnxruntime')
    path, data, folder = config
    out = tmp_path / 'start.jsonl'
    part = () if folder else ('--part', 'backbone')
    assert ends('export_onnx', path, '--out', tmp_path / 'net.onnx',
                '--size', 32, 32, *part) == 0
    assert ends(SHOWN('model_report'), path, '--image-size', 32, 32,
                '--runs', 1) == 0
    assert ends(SHOWN('measure_stiffness'), path, *data, '--num-samples', 2,
                '--device', 'cpu', '--out', out) == 0
    assert out.read_text().count('\n') >= 2
    if folder == 'self_attention':
        assert ends(SHOWN('measure_attention'), path, '--device', 'cpu',
                    '--num-samples', 2, '--out', tmp_path / 'maps') == 0
    if folder not in ('self_attention', 'vit'):  # others than ResNets
        assert ends(SHOWN('compare_definitions'), path, *data,
                    '--num-samples', 2) == 0


@pytest.mark.long
def test_it_is_trained_and_tested(ends, config, tmp_path):
    path, data, folder = config
    work = tmp_path / 'work'
    assert ends('train', path, *data, '--work-dir', work) == 0
    last = (work / 'last_checkpoint').read_text()
    assert ends('test', path, last, *data, '--work-dir',
                tmp_path / 'test') == 0
