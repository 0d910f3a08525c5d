import copy
import random

import numpy as np
import pytest
import torch
from mmengine import dist
from ranks import results_of_ranks
from resume_run import assert_same
from torch.utils.data import DataLoader
from toy_run import BACKBONE, ToyDataset, ToyModel

from stepnet_mm.recording import TrajectoryRecorder
from stepnet_mm.recording.probe import (
    Probe,
    restored_state,
    run_features,
    spread_indices,
)
from stepnet_mm.stiffness import summarize_stiffness
from stepnet_mm.utils.random_state import get_random_state


def measure(model, probe):
    recorder = TrajectoryRecorder(model)
    probe.measure(model, recorder)
    return recorder.nsi


@pytest.mark.parametrize('size, number, expected', [
    (3, 8, [0, 1, 2]), (4, None, [0, 1, 2, 3]), (7, 3, [0, 2, 4])])
def test_spread(size, number, expected):
    assert spread_indices(size, number) == expected
    with pytest.raises(ValueError, match='num_samples'):
        spread_indices(size, 0)


class RandomDataset(ToyDataset):
    """Draws from every global generator, as a training set's pipeline."""

    def __getitem__(self, i):
        return dict(inputs=torch.rand(3, 32, 32) * random.random()
                    * np.random.rand())


@pytest.mark.parametrize('workers', [0, 1])
def test_random_samples_are_the_same_and_nothing_changes(workers):
    model = ToyModel(BACKBONE).train()
    model.backbone.layer1.eval()  # as frozen stages are
    flags = {name: m.training for name, m in model.named_modules()}
    state = copy.deepcopy(model.state_dict())
    probe = Probe(DataLoader(
        RandomDataset(), batch_size=4, num_workers=workers, shuffle=True), 6)
    assert probe.indices == [0, 2, 5, 8, 10, 13]
    generators = get_random_state()
    nsi = measure(model, probe)
    assert nsi.shape == (6, 5)
    assert torch.equal(measure(model, probe), nsi)
    with pytest.raises(RuntimeError, match='on purpose'):
        with restored_state(model):
            assert not model.backbone.training
            raise RuntimeError('on purpose')
    assert_same(get_random_state(), generators)
    assert {name: m.training for name, m in model.named_modules()} == flags
    assert_same(model.state_dict(), state)


def test_a_model_without_a_backbone_runs_its_features():
    calls = []
    model = ToyModel(BACKBONE)
    model.extract_feat = lambda inputs: calls.append(inputs.shape)
    run_features(
        model, dict(inputs=torch.zeros(2, 3, 32, 32)), ['body.layer1.1'])
    assert calls == [(2, 3, 32, 32)]


def in_double(samples):
    """A batch, whose size then does not matter."""
    return dict(inputs=[sample['inputs'].double() for sample in samples])


def probed(number, rank=0, batch_size=2):
    """The rows and numbers of a probe, in however many processes.

    And whether the BatchNorm averages, of each rank its own, are as before.
    """
    torch.manual_seed(0)
    model = ToyModel(BACKBONE).double()
    model.backbone.layer2[1].norm1.running_var.add_(rank)
    before = copy.deepcopy([*model.buffers()])
    recorder = TrajectoryRecorder(model)
    data = DataLoader(ToyDataset(), batch_size, collate_fn=in_double)
    Probe(data, number).measure(model, recorder)
    nsi = torch.cat(dist.all_gather_object(recorder.nsi))
    kept = all(map(torch.equal, model.buffers(), before))
    return len(nsi), summarize_stiffness(nsi, recorder.stage), kept


def test_two_processes_give_the_same_numbers_as_one():
    """Uneven last batches, and a rank without samples, too."""
    numbers = 7, 1
    expected = [probed(number, batch_size=7)[1] for number in numbers]
    for results in results_of_ranks(
            lambda rank: [probed(number, rank) for number in numbers]):
        for number, wanted, (count, found, kept) in zip(
                numbers, expected, results):
            assert count == number and kept
            assert found == pytest.approx(wanted, rel=1e-12)
