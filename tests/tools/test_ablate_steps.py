import json

import pytest

pytestmark = pytest.mark.core
pytest.importorskip('mmpretrain')
TOOL = 'analysis/ablate_steps'


@pytest.fixture
def with_step(classifier):
    """Its backbone takes a step; NSI shows what accuracy on 8 images hides."""

    def change(step):
        classifier.write_text(classifier.read_text().replace(
            "'StepResNet'", f"'StepResNet', step=dict(type='{step}')") + """
val_evaluator = [dict(type='Accuracy', topk=(1, )), dict(type='TNSMetric')]
custom_hooks = [dict(type='EMAHook', momentum=.1)]
""")
        return classifier

    return change


def ablate(tool, config, work_dir):
    tool('train', config, '--work-dir', work_dir)
    tool(TOOL, config, work_dir / 'epoch_2.pth')
    return json.loads((work_dir / 'epoch_2_steps.json').read_text())


def test_a_network_that_adapts(tool, with_step, tmp_path, capsys):
    found = ablate(tool, with_step('ECAAttention'), tmp_path / 'work')
    trained, channel, block = (found['metrics'][key] for key in (
        'trained', 'per_channel', 'per_block'))
    assert trained.keys() == channel.keys() == block.keys()
    assert 'accuracy/top1' in trained and len(found['steps']) == 8
    # f and x_t, which other step sizes before them change
    means = {m['stiffness_eval/nsi_stage4_mean'] for m in (
        trained, channel, block)}
    assert len(means) == 3
    for numbers in found['steps'].values():
        assert 0 < numbers['mean'] < 1
        assert numbers['over_images'] > 0 and numbers['over_channels'] > 0
    said = capsys.readouterr().out
    assert 'as trained' in said and 'backbone.layer4.1.step' in said
    assert 'epoch_2_steps.json' in said


def test_averaged_weights_stay_and_constants_lose_nothing(
        tool, with_step, tmp_path):
    """With EMAHook, each evaluation is of the averaged weights."""
    config = with_step('ConstantStep')
    metrics = ablate(tool, config, tmp_path / 'work')['metrics']
    assert metrics['trained']['stiffness_eval/nsi_stage4_mean'] > 0
    assert metrics['per_channel'] == pytest.approx(metrics['trained'])
    assert metrics['per_block'] == pytest.approx(metrics['trained'])


def test_a_detector_on_its_test_split(tool, detector, tmp_path):
    pytest.importorskip('mmdet')
    config, data = detector
    tool('train', config, '--data-root', data, '--work-dir', tmp_path / 'w')
    out = tmp_path / 'found' / 'steps.json'
    tool(TOOL, config, tmp_path / 'w/iter_4.pth', '--data-root', data,
         '--split', 'test', '--out', out)
    found = json.loads(out.read_text())
    assert 'coco/bbox_mAP' in found['metrics']['per_block']
    assert len(found['sha256']) == 12 and found['checkpoint'].endswith('.pth')


@pytest.mark.parametrize('arguments, wrong', [
    (['--cfg-options', 'model.backbone.type=ResNet'],
     'step-size modules in ImageClassifier'),
    (['--split', 'test', '--cfg-options', 'test_evaluator=None'],
     'test_evaluator, got none'),
])
def test_bad_input(tool, classifier, tmp_path, arguments, wrong):
    tool('train', classifier, '--work-dir', tmp_path / 'w')
    with pytest.raises(ValueError, match=wrong):
        tool(TOOL, classifier, tmp_path / 'w/epoch_2.pth', *arguments)
    assert not (tmp_path / 'w/epoch_2_steps.json').exists()
