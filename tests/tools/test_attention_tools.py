import re
from pathlib import Path

import cv2
import pytest

from stepnet_mm.attention import read_attention_record

PAGE = Path(__file__).resolve().parents[2] / 'docs/self_attention.md'
NET = '''
model['backbone'] = dict(
    _delete_=True, type='SelfAttentionNet', embed_dims=12, num_layers=2,
    num_heads=3, feedforward_channels=8)
model['head']['in_channels'] = 12
data['pipeline'][1]['scale'] = (32, 32)
custom_hooks = [dict(type='AttentionMapHook')]
'''


@pytest.mark.long
def test_a_training_and_its_checkpoint(tool, printed, classifier, tmp_path,
                                       monkeypatch):
    work = tmp_path / 'work'
    classifier.write_text(classifier.read_text() + NET)
    tool('train', classifier, '--work-dir', work)
    table = printed('analysis/plot', 'attention', work).splitlines()[2:5]
    assert [row.split()[0] for row in table] == ['0', '2', '4']
    for name in ('maps', 'range'):
        assert cv2.imread(str(work / f'attention_{name}.png')).std() > 5

    # The lines of the page that measure a checkpoint.
    code, = (code for code in re.findall(
        r'^```python\n(.*?)^```$', PAGE.read_text(), re.M | re.S)
        if 'record_attention' in code)
    monkeypatch.chdir(tmp_path)
    exec(code, dict(CONFIG=classifier, CHECKPOINT=str(work / 'epoch_2.pth')))
    record = read_attention_record('attention.npz')
    assert record.samples == 8 and [*record.query] == [16, 16]
    tool('analysis/plot', 'attention', 'attention.npz')
    assert (tmp_path / 'attention_maps.png').exists()
