"""A whole model goes to another process, which imports what it names."""
import pickle
from pathlib import Path

import pytest
import torch
from fresh import printed_by

from stepnet_mm.ops import residual_tail


def print_sum(path):
    net, x = pickle.loads(Path(path).read_bytes())
    with torch.no_grad():
        print(net(x)[-1].sum().item())


@pytest.mark.core
@pytest.mark.parametrize('models, cfg', [
    ('mmdet', dict(type='StepResNeXt', depth=50, groups=4, base_width=4)),
    ('mmpretrain', dict(type='StepResNet', depth=18)),
    ('mmpretrain', dict(type='StepResNetCIFAR', depth=20, preact=True)),
    ('mmdet', dict(type='StepMobileNetV2', widen_factor=.25)),
    ('mmpretrain', dict(type='StepVisionTransformer', img_size=32, arch=dict(
        embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=48)))],
    indirect=['models'])
def test_another_process(models, cfg, tmp_path, capsys, monkeypatch):
    # As the other process has it.
    monkeypatch.setitem(residual_tail.MIN_NUMEL, 'cpu', 2**18)
    net, path = models.build(cfg), tmp_path / 'net.pkl'
    net.eval()
    path.write_bytes(pickle.dumps((net, torch.randn(1, 3, 32, 32))))
    print_sum(path)
    assert capsys.readouterr().out == printed_by(tmp_path, print_sum, path)
