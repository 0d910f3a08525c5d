import cv2
import pytest

from stepnet_mm.attention import read_attention_record

pytest.importorskip('mmpretrain')
pytest.importorskip('matplotlib')

MEASURE, PLOT = 'analysis/measure_attention', 'analysis/plot_attention'


@pytest.fixture
def config(classifier):
    """A small SelfAttentionNet on the images of the toy classifier."""
    text = classifier.read_text()
    for old, new in (
            ("backbone=dict(type='StepResNet', stem_channels=8, "
             'base_channels=8)',
             "backbone=dict(_delete_=True, type='SelfAttentionNet', "
             'embed_dims=12, num_layers=2, num_heads=3, '
             'feedforward_channels=8)'),
            ('in_channels=64', 'in_channels=12'),
            ('scale=32', 'scale=(32, 32)'),
            ("dict(type='TNSHook', interval=1)",
             "dict(type='AttentionMapHook')")):
        assert old in text
        text = text.replace(old, new)
    classifier.write_text(text)
    return classifier


@pytest.mark.long
def test_a_training_its_checkpoint_and_the_start(tool, config, tmp_path,
                                                 capsys):
    work = tmp_path / 'work'
    tool('train', config, '--work-dir', work)
    capsys.readouterr()
    tool(PLOT, work)
    table = capsys.readouterr().out.splitlines()[2:5]
    assert [row.split()[0] for row in table] == ['0', '2', '4']
    for name in ('maps', 'range'):
        assert cv2.imread(str(work / f'attention_{name}.png')).std() > 5

    tool(MEASURE, config, work / 'epoch_2.pth', '--device', 'cpu',
         '--query', 3, 31, '--num-samples', 2)
    record = read_attention_record(work / 'epoch_2_attention.npz')
    assert (record.name, record.samples, record.iteration) == (
        'classifier', 2, 4)
    assert [tuple(layer.query) for layer in record.layers] == [(1, 15)] * 2
    assert record.image.mean() < 127  # the first one is dark
    # A change of the weights is a change of the maps.
    tool(MEASURE, config, '--device', 'cpu', '--image', 7, '--out',
         tmp_path / 'start.npz', '--query', 3, 31)
    start = read_attention_record(tmp_path / 'start.npz')
    assert start.image.mean() > 127
    assert (start.layers[0].maps != record.layers[0].maps).any()
