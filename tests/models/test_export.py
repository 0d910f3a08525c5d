"""ONNX, by the code of docs/performance.md."""
import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
CODE, = re.findall(r'```python\n(import onnxruntime\n.*?)```', (
    ROOT / 'docs/performance.md').read_text(), re.S)
CONFIG = '''
_base_ = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(backbone=dict(type='StepResNet', base_channels=8),
             head=dict(in_channels=64, topk=(1, )))
'''


@pytest.mark.parametrize('changes', [
    pytest.param({}, marks=[pytest.mark.core, pytest.mark.long]),
    {"['images'])": "['images'], dynamo=False)",
     '# net = net.backbone': 'net = net.backbone'}], ids=['page', 'backbone'])
def test_onnxruntime_gives_what_torch_gives(
        changes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path('config.py').write_text(CONFIG)
    code = CODE.replace('224', '32')
    for old, new in changes.items():
        assert old in code
        code = code.replace(old, new)
    with torch.no_grad():
        exec(code, dict(CONFIG='config.py', CHECKPOINT=None))
    difference, = re.findall(r'tensor\((.*)\)', capsys.readouterr().out)
    assert float(difference) < 1e-4
