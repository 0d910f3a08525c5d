"""Whole models pickle, copy and go to another process."""
import copy
import io
import pickle
from pathlib import Path

import pytest
import torch
from fresh import printed_by


def by_torch(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.core
@pytest.mark.parametrize('way, models', [
    (by_torch, 'mmdet'), (copy.deepcopy, 'mmpretrain')], indirect=['models'])
def test_backbones(models, way):
    net = models.build(dict(
        type='StepResNet', depth=18, base_channels=8, stem_channels=8))
    twin = way(net)
    assert type(twin) is type(net)
    twin.eval(), net.eval()
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert all(map(torch.equal, twin(x), net(x)))


def print_sum(path):
    net, x = pickle.loads(Path(path).read_bytes())
    with torch.no_grad():
        print(net(x)[-1].sum().item())


@pytest.mark.parametrize('cfg', [
    dict(type='StepResNetCIFAR', depth=14, block='basic', preact=True),
    dict(type='StepVisionTransformer', img_size=32, arch=dict(
        embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=48))])
def test_another_process(models, cfg, tmp_path, capsys):
    """It imports what the pickle names."""
    net, path = models.build(cfg), tmp_path / 'net.pkl'
    net.eval()
    path.write_bytes(pickle.dumps((net, torch.randn(1, 3, 32, 32))))
    print_sum(path)
    assert capsys.readouterr().out == printed_by(tmp_path, print_sum, path)
