"""A quantity of a user's own gets x_t, f and Δt of every network."""

import pytest
import torch
from mmengine.registry import HOOKS, MODELS
from resume_run import assert_same
from toy_run import scalars, toy_runner

from stepnet_mm import add_steps
from stepnet_mm.hooks import BlockQuantityHook
from stepnet_mm.recording import QuantityRecorder, TrajectoryRecorder
from stepnet_mm.stiffness import norm_ratio, sample_norm


@HOOKS.register_module()
class Nsi(BlockQuantityHook):
    """What TNSHook logs, by a quantity."""

    def quantity(self, x, f, step):
        return norm_ratio(sample_norm(f), sample_norm(x))


def test_it_is_logged_and_changes_no_bit(tmp_path):
    hooks = [dict(type=name, interval=2) for name in ('TNSHook', 'Nsi')]
    plain = toy_runner(tmp_path / 'plain', [], 4).train()
    watched = toy_runner(tmp_path / 'watched', hooks, 4).train()
    assert_same(plain.state_dict(), watched.state_dict())
    rows, own = (scalars(tmp_path / 'watched', name)
                 for name in ('stiffness', 'Nsi'))
    assert [row['step'] for row in own] == [2, 4]
    for row, mine in zip(rows, own):
        assert mine['Nsi/stage2'] == pytest.approx(
            row['stiffness/nsi_stage2_mean'])
        assert {key.rpartition('/')[2] for key in mine if 'block/' in key} == {
            key.rpartition('/')[2] for key in row if '/nsi/' in key}


@pytest.mark.parametrize('cfg', [
    dict(type='mmpretrain.StepResNet', depth=34, base_channels=8,
         stem_channels=8),
    dict(type='mmpretrain.ConvNeXt', arch=dict(
        depths=[2, 2], channels=[8, 16]), out_indices=(0, 1))],
    ids=['own', 'any'])
def test_maps_and_step_sizes(cfg):
    net = MODELS.build(cfg)
    net.eval()
    images = torch.randn(2, 3, 32, 32)
    if 'Step' not in cfg['type']:
        add_steps(net, 'StepAdaptor', images=images)
    seen = []

    def quantity(x, f, size):
        seen.append((x + size * f).shape == x.shape)
        return norm_ratio(sample_norm(f), sample_norm(x))

    with torch.no_grad(), TrajectoryRecorder(net) as reference:
        net(images)
    with torch.no_grad(), QuantityRecorder(net, quantity) as recorder:
        net(images)
    assert seen and all(seen)
    torch.testing.assert_close(recorder.values, reference.nsi)
    with pytest.raises(ValueError, match='a number for each sample'):
        with QuantityRecorder(net, lambda x, f, size: f):
            net(images)
