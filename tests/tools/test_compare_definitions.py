import pytest
import torch
from torch import nn

from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks
from stepnet_mm.stiffness import total_neural_stiffness


@pytest.fixture
def compare(load_tool):
    return load_tool('analysis/compare_definitions').compare


def build(step, library='mmpretrain'):
    model = pytest.importorskip(f'{library}.registry').MODELS.build(dict(
        type=f'{library}.StepResNetCIFAR', depth=26, block='basic',
        step=step))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=.3)
    model.eval()
    return model, torch.randn(5, 3, 16, 16)


def recorded(model, images, definition):
    with TrajectoryRecorder(model, definition=definition) as recorder:
        model(images)
    return total_neural_stiffness(recorder.nsi, recorder.stage).mean().item()


@pytest.mark.parametrize('step', [None, 'StepAdaptor'])
@torch.no_grad()
def test_the_two_of_the_recorder_are_among_them(compare, step):
    model, images = build(step)
    found = compare(find_residual_blocks(model), lambda: model(images))
    assert all(list(own) == ['tns', 'tns_median', 'tns_q95']
               for own in found.values())
    found = {text: own['tns'] for text, own in found.items()}
    values = list(found.values())
    assert values[0] == pytest.approx(
        recorded(model, images, 'residual'), rel=1e-4)
    assert found['x_{t+1} is the block output, after the activation'] == (
        pytest.approx(recorded(model, images, 'output'), rel=1e-4))
    assert found['norms as means over the elements, not sums'] == (
        pytest.approx(values[0], rel=1e-4))
    undivided = found['not divided by Δt: f ⊗ Δt over x_t']
    assert (undivided == pytest.approx(values[0])) == (step is None)
    assert len(set(values)) >= 6


@torch.no_grad()
def test_batches_give_the_numbers_of_one(compare):
    model, images = build('SEAttention')
    whole = compare(find_residual_blocks(model), lambda: model(images))
    parts = compare(find_residual_blocks(model),
                    lambda: [model(part) for part in images.split(2)])
    for text, numbers in whole.items():
        assert parts[text] == pytest.approx(numbers, rel=1e-5), text


def test_blocks_that_hide_f_are_refused(compare):
    blocks = find_residual_blocks(nn.Sequential(*[
        nn.TransformerEncoderLayer(8, 2) for _ in range(2)]))
    with pytest.raises(ValueError, match='got .*0.*1'):
        compare(blocks, lambda: None)
