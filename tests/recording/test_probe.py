import copy
import random

import numpy as np
import pytest
import torch
from ranks import run_on_ranks
from torch.utils.data import DataLoader
from toy_run import ToyDataset, ToyModel

from stepnet_mm.hooks.tns_hook import _gather
from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.recording.probe import (
    Probe,
    kept_state,
    run_features,
    spread_indices,
)
from stepnet_mm.stiffness import summarize_stiffness

pytest.importorskip('mmpretrain')
BACKBONE = dict(
    type='mmpretrain.StepResNet', depth=18, base_channels=8, stem_channels=8)


def loader(**kwargs):
    return DataLoader(ToyDataset(), **dict(dict(batch_size=4), **kwargs))


def measure(model, probe):
    recorder = TrajectoryRecorder(model)
    probe.measure(model, recorder)
    return recorder.nsi


@pytest.mark.parametrize('size, number, expected', [
    (10, 5, [0, 2, 4, 6, 8]), (3, 8, [0, 1, 2]), (4, None, [0, 1, 2, 3]),
    (7, 3, [0, 2, 4])])
def test_spread(size, number, expected):
    assert spread_indices(size, number) == expected


@pytest.mark.parametrize('size, number', [(0, 3), (5, 0), (5, 2.5)])
def test_wrong_numbers(size, number):
    with pytest.raises(ValueError, match='num_samples'):
        spread_indices(size, number)


def test_the_samples_are_the_same_every_time():
    model, probe = ToyModel(BACKBONE), Probe(loader(shuffle=True), 6)
    assert probe.indices == [0, 2, 5, 8, 10, 13]
    nsi = measure(model, probe)
    assert nsi.shape == (6, 4)
    assert torch.equal(measure(model, probe), nsi)
    images = torch.stack([ToyDataset()[i]['inputs'] for i in probe.indices])
    model.eval()
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        model.backbone(images[:4])
        model.backbone(images[4:])
    assert torch.equal(recorder.nsi, nsi)


class NoisyDataset(ToyDataset):
    """Draws from every global generator."""

    def __getitem__(self, i):
        random.random(), np.random.rand(), torch.rand(1)
        return super().__getitem__(i)


class RandomDataset(ToyDataset):
    """A pipeline that draws, as that of a training set does."""

    def __getitem__(self, i):
        return dict(inputs=torch.rand(3, 32, 32) * random.random())


@pytest.mark.parametrize('workers', [0, 1])
def test_a_random_pipeline_draws_the_same_every_time(workers):
    model = ToyModel(BACKBONE)
    probe = Probe(
        DataLoader(RandomDataset(), batch_size=4, num_workers=workers), 8)
    assert torch.equal(measure(model, probe), measure(model, probe))


def draws():
    return random.random(), np.random.rand(), torch.rand(1).item()


def test_nothing_changes():
    model = ToyModel(BACKBONE).train()
    model.backbone.layer1.eval()  # as frozen stages are
    flags = {name: m.training for name, m in model.named_modules()}
    state = copy.deepcopy(model.state_dict())
    probe = Probe(DataLoader(NoisyDataset(), batch_size=4), 8)
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(3)
    expected = draws()
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(3)
    measure(model, probe)
    assert draws() == expected
    assert {name: m.training for name, m in model.named_modules()} == flags
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key]), key


def test_state_is_restored_after_an_error():
    model = ToyModel(BACKBONE).train()
    with pytest.raises(RuntimeError, match='on purpose'):
        with kept_state(model):
            assert not model.backbone.training
            raise RuntimeError('on purpose')
    assert all(m.training for m in model.modules())


def test_a_model_without_a_backbone_runs_its_features():
    calls = []

    class Features(ToyModel):

        def __init__(self):
            super().__init__(BACKBONE)
            self.body = self.backbone
            del self.backbone

        def extract_feat(self, inputs):
            calls.append(inputs.shape)

    run_features(
        Features(), dict(inputs=torch.zeros(2, 3, 32, 32)), ['body.layer1.1'])
    assert calls == [(2, 3, 32, 32)]


class DoubleImages(ToyDataset):
    """In double precision the size of a batch does not matter."""

    def __getitem__(self, i):
        return dict(inputs=super().__getitem__(i)['inputs'].double())


def probed(number, rank=0, **kwargs):
    """The rows and numbers of a probe, in however many processes.

    And whether the BatchNorm averages, of each rank its own, are as before.
    """
    torch.manual_seed(0)
    model = ToyModel(BACKBONE).double()
    model.backbone.layer3[1].norm1.running_var.add_(rank)
    before = copy.deepcopy([*model.buffers()])
    recorder = TrajectoryRecorder(model)
    data = DataLoader(DoubleImages(), **{'batch_size': 2, **kwargs})
    Probe(data, number).measure(model, recorder)
    nsi = _gather(recorder.nsi)
    kept = all(map(torch.equal, model.buffers(), before))
    return len(nsi), summarize_stiffness(nsi, recorder.stage), kept


def _measure_rank(rank, rendezvous, world, number, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{rendezvous}', rank=rank,
        world_size=world)
    results[rank] = probed(number, rank)


@pytest.mark.parametrize('world, number', [(2, 7), (4, 3)])
def test_any_number_of_processes_gives_the_same_numbers(
        tmp_path, world, number):
    """Uneven last batches, and a rank without samples, too."""
    results = torch.multiprocessing.get_context('fork').Manager().dict()
    run_on_ranks(
        _measure_rank, (tmp_path / 'meet', world, number, results), world)
    count, expected, _ = probed(number, batch_size=7)
    assert count == number
    for rank in range(world):
        assert results[rank][0] == number
        assert results[rank][1] == pytest.approx(expected, rel=1e-12)
        assert results[rank][2]
