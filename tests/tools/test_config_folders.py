"""Tools on a config of each kind of network under configs/, cut down."""
import pytest
from mmengine.registry import DefaultScope

pytest.importorskip('mmpretrain')

#: Folder -> a config of it, its backbone cut down, channels at its end.
CLASSIFIERS = dict(
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


@pytest.fixture(params=CLASSIFIERS)
def config(request, classifier, tmp_path):
    """A config of that folder."""
    name, backbone, channels = CLASSIFIERS[request.param]
    classifier.write_text(CLASSIFIER.format(
        configs=request.config.rootpath / 'configs', folder=request.param,
        name=name, backbone=backbone, channels=channels,
        data=tmp_path / 'images'))
    return classifier, request.param


@pytest.fixture
def ends(tool):
    """ends('train', ...): run a tool to its end, without an error"""

    def run(*arguments):
        DefaultScope._instance_dict.clear()  # as in a process of its own
        try:
            tool(*arguments)
        except SystemExit as ended:
            assert not ended.code

    return run


@pytest.mark.core
def test_the_network_is_measured_and_exported(ends, config, tmp_path):
    pytest.importorskip('onnxruntime')
    path, folder = config
    out = tmp_path / 'start.jsonl'
    ends('export_onnx', path, '--out', tmp_path / 'net.onnx', '--size', 32, 32)
    ends('analysis/model_report', path, '--image-size', 32, 32)
    few = ('--device', 'cpu', '--num-samples', 2, '--out')
    ends('analysis/measure_stiffness', path, *few, out)
    assert out.read_text().count('\n') >= 2
    if folder == 'self_attention':
        ends('analysis/measure_attention', path, *few, tmp_path / 'm.npz')


@pytest.mark.long
@pytest.mark.parametrize('config', ['vit'], indirect=True)
def test_it_is_trained_and_tested(ends, config, tmp_path):
    path, _ = config
    work = tmp_path / 'work'
    ends('train', path, '--work-dir', work)
    last = (work / 'last_checkpoint').read_text()
    ends('test', path, last, '--work-dir', tmp_path / 'test')
