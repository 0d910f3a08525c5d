import math

import pytest
import torch

from stepnet_mm.steps import ConstantStep, StepAdaptor, build_step
from stepnet_mm.steps.chosen_start import PUBLISHED_STEP_SIZE

LEARNED = pytest.mark.parametrize('learned', [False, True])


@LEARNED
@pytest.mark.parametrize('value', [0, .5, 3.])
def test_scales_every_input_by_its_value(learned, value):
    x, f = torch.randn(2, 3, 5, 4, 4)
    step = ConstantStep(5, value=value, learned=learned)
    assert torch.equal(step(x, f), f * value)
    assert step.init_step == value
    assert len([*step.parameters()]) == learned
    step.value.data[1] = 7
    assert torch.equal(step(f)[:, 1:3], f[:, 1:3] * torch.tensor(
        [7, value]).view(2, 1, 1))


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


@pytest.mark.parametrize('cfg, key', [
    (dict(type='StepAdaptor'), 'init_step'),
    (dict(type='ConstantStep'), 'value'),
    (dict(type='ConstantStep', learned=True), 'value')])
def test_a_number_or_a_checkpoint_says_where_it_starts(cfg, key):
    f = torch.randn(3, 5, 4, 4)
    chosen = build_step({**cfg, key: .4}, 5)
    loaded, empty = build_step(cfg, 5), build_step(cfg, 5)
    loaded.load_state_dict(chosen.state_dict())
    empty.load_state_dict({}, strict=False)
    assert loaded.loaded and not empty.loaded
    for step in (chosen, loaded):
        step.start_pretrained()
        torch.testing.assert_close(step(f, f), f * .4)


@pytest.mark.parametrize('wrong', [math.nan, math.inf, -1])
def test_wrong_values(wrong):
    with pytest.raises(ValueError, match=r'step\.value: '):
        ConstantStep(5, value=wrong)
