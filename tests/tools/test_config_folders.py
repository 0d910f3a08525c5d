"""Tools on a config of each kind of network under configs/, cut down."""
import pytest

pytest.importorskip('mmpretrain')

CLASSIFIER = '''
_base_ = '{configs}/{name}.py'
model = dict(
    backbone=dict({backbone}),
    head=dict(in_channels={channels}, num_classes=2))
data_preprocessor = dict(num_classes=2)
test_dataloader = dict(
    batch_size=4, num_workers=0, persistent_workers=False, dataset=dict(
        _delete_=True, type='CustomDataset', data_root='{data}',
        data_prefix='val', pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]))
'''


@pytest.mark.core
@pytest.mark.parametrize('name, backbone, channels', [
    ('resnet164/resnet164_plain_cifar10', 'depth=29', 256),
    ('self_attention/self_attention_stepnet_cifar10',
     'embed_dims=12, num_layers=2, num_heads=3, feedforward_channels=8', 12),
    ('vit/vit_stepnet_cifar10',
     'arch=dict(embed_dims=16, num_layers=3, num_heads=2, '
     'feedforward_channels=16)', 16)])
def test_the_network_is_measured(
        tool, classifier, tmp_path, request, name, backbone, channels):
    classifier.write_text(CLASSIFIER.format(
        configs=request.config.rootpath / 'configs', name=name,
        backbone=backbone, channels=channels, data=tmp_path / 'images'))
    tool('analysis/model_report', classifier, '--image-size', 32, 32)
    few = (classifier, '--device', 'cpu', '--num-samples', 2, '--split',
           'test', '--out')
    out = tmp_path / 'start.jsonl'
    tool('analysis/measure_stiffness', *few, out)
    assert out.read_text().count('\n') >= 2
    if 'self_attention' in name:
        tool('analysis/measure_attention', *few, tmp_path / 'm.npz')
