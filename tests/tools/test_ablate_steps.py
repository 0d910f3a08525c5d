import json
import re
import sys

import ablate_steps
import pytest
import torch
from mmengine.config import Config

from stepnet_mm.launch.entry import build_model

TOOL = 'analysis/ablate_steps'


def test_a_trained_network(tool, classifier, tmp_path):
    """NSI shows what accuracy on 8 images hides.

    With EMAHook, each evaluation is of the averaged weights.
    """
    classifier.write_text(classifier.read_text().replace(
        "'StepResNet'", "'StepResNet', step=dict(type='ECAAttention')") + """
val_evaluator = [dict(type='Accuracy', topk=(1, )), dict(type='TNSMetric')]
custom_hooks = [dict(type='EMAHook', momentum=.1)]
randomness = dict(seed=0)
""")
    work = tmp_path / 'work'
    tool('train', classifier, '--work-dir', work)
    tool(TOOL, classifier, work / 'epoch_2.pth', '--work-dir',
         work / 'ablation')
    found = json.loads((work / 'epoch_2_steps_val.json').read_text())
    trained, channel, block = (found['metrics'][key] for key in (
        'trained', 'per_channel', 'per_block'))
    assert trained.keys() == channel.keys() == block.keys()
    key = 'stiffness_eval/nsi_stage4_mean'
    assert 'accuracy/top1' in trained and trained[key] > 0
    # The log of the work dir is that of the network as it is.
    log, = (work / 'ablation').glob('*/*.json')
    assert json.loads(log.read_text())[key] == trained[key]
    assert (found['split'], found['images']) == ('val', 8)
    assert len(found['steps']) == 8
    # f and x_t, which other step sizes before them change
    assert len({numbers[key] for numbers in (trained, channel, block)}) == 3
    for numbers in found['steps'].values():
        assert 0 < numbers['mean'] < 1 and numbers['over_positions'] == 0
        assert numbers['over_samples'] > 0 and numbers['over_channels'] > 0
        assert sum(numbers['by_channel']) / len(
            numbers['by_channel']) == pytest.approx(numbers['mean'])


@pytest.mark.long
def test_metrics_that_are_no_finite_numbers(
        forget_runs, classifier, tmp_path, capsys, monkeypatch):
    """JSON has no NaN, and a variant may lack a metric."""
    from mmengine.evaluator import Evaluator
    given = iter([dict(a=float('nan'), b=torch.tensor(2.), c=[1]),
                  dict(b=1), {}])
    monkeypatch.setattr(Evaluator, 'evaluate', lambda *_: next(given, {}))
    moments, log = ablate_steps.StepSizeMoments, str(tmp_path / 'log')
    monkeypatch.setattr(moments, 'numbers', lambda own, of=moments.numbers: (
        dict(of(own), over_samples=float('inf'))))
    path = tmp_path / 'epoch_2.pth'
    torch.save(build_model(Config.fromfile(classifier)).state_dict(), path)
    monkeypatch.setattr(sys, 'argv', [
        f'{TOOL}.py', str(classifier), str(path), '--work-dir', log])
    forget_runs()
    ablate_steps.main()
    found = json.loads((tmp_path / 'epoch_2_steps_val.json').read_text())
    assert found['metrics'] == dict(
        trained=dict(a=None, b=2), per_channel=dict(b=1), per_block={})
    assert all(step['over_samples'] is None and 0 < step['mean'] < 1
               for step in found['steps'].values())
    assert re.search(r'^b +2 +1 +-$', capsys.readouterr().out, re.M)
    forget_runs()
    with pytest.raises(ValueError, match='metrics that are numbers'):
        ablate_steps.main()
