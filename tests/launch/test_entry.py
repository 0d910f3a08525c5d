import os
from argparse import Namespace

import pytest
import torch
from mmcv.cnn import ConvModule
from mmengine.config import Config
from mmengine.registry import RUNNERS

from stepnet_mm.launch import entry


@pytest.fixture
def config(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text('''
test_dataloader = dict(dataset=dict(type='A', data_root='old', pipeline=[
    dict(type='Resize', scale=(2, 1))]))
''')
    return str(path)


def config_from(config, *options):
    return entry.config_from(
        entry.make_parser('about').parse_args([str(config), *options]))


@pytest.mark.core
def test_the_common_options_reach_the_config(config, monkeypatch):
    monkeypatch.delenv('LOCAL_RANK', raising=False)
    cfg = config_from(
        config, '--work-dir', 'there', '--data-root', 'new', '--image-scale',
        '4', '3', '--cfg-options', 'a.b=5', '--launcher', 'pytorch',
        '--local-rank', '1', '--no-pin-memory')
    dataset = cfg.test_dataloader.dataset
    assert (cfg.work_dir, cfg.launcher, cfg.a.b) == ('there', 'pytorch', 5)
    assert dataset.data_root == 'new'
    assert dataset.pipeline[0].scale == (4, 3)
    assert cfg.test_dataloader.pin_memory is False
    for launcher, rank in ('pytorch', '1'), ('none', None):
        monkeypatch.setenv('RANK', '1')
        config_from(config, '--launcher', launcher)
        assert os.environ.get('RANK') == rank


def test_the_runner_of_a_config(config, monkeypatch):
    monkeypatch.setattr(RUNNERS, 'build', lambda cfg: cfg.runner_type)
    cfg = config_from(config, '--cfg-options', 'runner_type=Own')
    assert entry.build_runner(cfg) == 'Own'
    for build in entry.build_model, entry.build_runner:
        with pytest.raises(ValueError, match='expected a config with a model'):
            build(config_from(config))


def test_where_a_measurement_goes(tmp_path):
    cfg = Config(dict(work_dir=str(tmp_path / 'work')))
    weights = tmp_path / 'epoch_2.pth'
    weights.touch()
    for checkpoint, out, where in (
            (str(weights), None, tmp_path / 'epoch_2_a.npz'),
            ('https://host/net.pth', None, tmp_path / 'work/net_a.npz'),
            (None, None, tmp_path / 'work/start_a.npz'),
            (None, tmp_path / 'own.npz', tmp_path / 'own.npz')):
        args = Namespace(out=out, checkpoint=checkpoint)
        assert entry.output_of(cfg, args, '_a.npz') == where
    args.out = tmp_path
    with pytest.raises(ValueError, match='^--out: expected a file, got'):
        entry.output_of(cfg, args, '_a.npz')


@pytest.mark.core
def test_a_network_is_built_to_be_measured(tmp_path):
    cfg = Config(dict(model=dict(
        type=ConvModule, in_channels=2, out_channels=2, kernel_size=1)))
    net, again = entry.build_model(cfg), entry.build_model(cfg)
    assert not net.training
    assert torch.equal(net.conv.weight, again.conv.weight)
    path = str(tmp_path / 'a.pth')
    torch.save(dict(state_dict=net.state_dict()), path)
    entry.build_model(cfg, path)
    torch.save(dict(state_dict={'conv.bias': net.conv.bias}), path)
    with pytest.raises(RuntimeError, match='conv.weight'):
        entry.build_model(cfg, path)
