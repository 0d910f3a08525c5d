import math

import pytest
import torch
from torch import nn

from stepnet_mm.steps import ConstantStep, StepAdaptor
from stepnet_mm.steps.chosen_start import PUBLISHED_STEP_SIZE

LEARNED = pytest.mark.parametrize('learned', [False, True])


@LEARNED
@pytest.mark.parametrize('value', [0, .5, 3.])
def test_scales_every_input_by_its_value(learned, value):
    x, f = torch.randn(2, 3, 5, 4, 4)
    step = ConstantStep(5, value=value, learned=learned)
    assert torch.equal(step(f), f * value)
    assert torch.equal(step(x, f), f * value)
    assert step.init_step == value


@LEARNED
def test_starts_where_step_adaptor_does(learned):
    x, f = torch.randn(2, 3, 5, 4, 4)
    step, adaptor = ConstantStep(5, learned=learned), StepAdaptor(5)
    for _ in range(2):
        torch.testing.assert_close(step(x, f), adaptor(x, f))
        for each in (step, adaptor):
            each.start_pretrained()
    assert torch.equal(step(f), f)
    step.forget_weights()
    step.init_weights()
    torch.testing.assert_close(step(f), f * PUBLISHED_STEP_SIZE)
    assert math.isclose(PUBLISHED_STEP_SIZE, .2689414213699951)


def test_a_learned_one_has_one_step_per_channel():
    step = ConstantStep(3, learned=True)
    step.value.data = torch.tensor([1., 2., 3.])
    f = torch.ones(2, 3, 1, 2)
    step(f).sum().backward()
    assert step(f)[0, :, 0, 0].tolist() == [1, 2, 3]
    assert torch.equal(step.value.grad, torch.full((3, ), 4.))
    assert not isinstance(ConstantStep(5).value, nn.Parameter)


@LEARNED
def test_a_number_or_a_checkpoint_says_where_it_starts(learned):
    chosen = ConstantStep(5, value=.4, learned=learned)
    loaded, empty = [ConstantStep(5, learned=learned) for _ in range(2)]
    loaded.load_state_dict(chosen.state_dict())
    empty.load_state_dict({}, strict=False)
    assert not empty.loaded
    for step in (chosen, loaded):
        step.start_pretrained()
        assert torch.equal(step.value, torch.full((5, ), .4))
    assert chosen.describe_start() == 'at 0.4 (value)'
    assert loaded.describe_start() == 'as a checkpoint has them'


@pytest.mark.parametrize('key, wrong', [
    ('value', math.nan), ('value', -1), ('value', True), ('value', '0.5'),
    ('value', [.5]), ('learned', 1), ('learned', None)])
def test_wrong_arguments(key, wrong):
    with pytest.raises(ValueError, match=rf'step\.{key}: '):
        ConstantStep(5, **{key: wrong})
