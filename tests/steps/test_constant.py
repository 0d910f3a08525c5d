import math

import pytest
import torch
from torch import nn

from stepnet_mm.steps import ConstantStep, StepAdaptor
from stepnet_mm.steps.base import default_blocks
from stepnet_mm.steps.chosen_start import PUBLISHED_STEP_SIZE

pytestmark = pytest.mark.core
LEARNED = pytest.mark.parametrize('learned', [False, True])


def count(step):
    return sum(p.numel() for p in step.parameters())


@LEARNED
@pytest.mark.parametrize('value', [0, 1, .5, 3.])
def test_scales_every_input_by_its_value(value, learned):
    step = ConstantStep(5, value=value, learned=learned)
    x, f = torch.randn(2, 3, 5, 4, 4)
    assert torch.equal(step(f), f * value)
    assert torch.equal(step(x, f), f * value)
    assert step.step_size(x, f).shape == (1, 5, 1, 1)
    assert step.init_step == value


@LEARNED
def test_starts_where_step_adaptor_does(learned):
    x, f = torch.randn(2, 3, 5, 4, 4)
    step, adaptor = ConstantStep(5, learned=learned), StepAdaptor(5)
    torch.testing.assert_close(step(x, f), adaptor(x, f))
    assert step.init_step == adaptor.init_step == PUBLISHED_STEP_SIZE
    assert math.isclose(PUBLISHED_STEP_SIZE, .2689414213699951)
    assert step.describe_start() == adaptor.describe_start()


def test_parameter_count():
    assert count(ConstantStep(5)) == 0
    assert count(ConstantStep(5, learned=True)) == 5


def test_a_learned_one_has_one_step_per_channel():
    step = ConstantStep(3, learned=True)
    step.value.data = torch.tensor([1., 2., 3.])
    f = torch.ones(2, 3, 1, 2)
    step(f).sum().backward()
    assert step(f)[0, :, 0, 0].tolist() == [1, 2, 3]
    assert torch.equal(step.value.grad, torch.full((3, ), 4.))


@LEARNED
def test_a_pretrained_block_starts_it_at_one(learned):
    step = ConstantStep(5, learned=learned)
    step.start_pretrained()
    f = torch.randn(2, 5, 3, 3)
    assert torch.equal(step(f), f)
    assert 'a checkpoint without steps' in step.describe_start()
    step.forget_weights()
    step.init_weights()
    torch.testing.assert_close(step(f), f * PUBLISHED_STEP_SIZE)


@LEARNED
def test_a_number_or_a_checkpoint_says_where_it_starts(learned):
    chosen = ConstantStep(5, value=.4, learned=learned)
    loaded = ConstantStep(5, learned=learned)
    loaded.load_state_dict(chosen.state_dict())
    for step in (chosen, loaded):
        step.start_pretrained()
        assert torch.equal(step.value, torch.full((5, ), .4))
    assert chosen.describe_start() == 'at 0.4 (value)'
    assert loaded.describe_start() == 'as a checkpoint has them'


@LEARNED
def test_weights_of_others_do_not_count_as_loaded(learned):
    step = ConstantStep(5, learned=learned)
    step.load_state_dict({}, strict=False)
    assert not step.loaded


def test_it_stands_where_step_adaptor_does():
    assert default_blocks('ConstantStep') == default_blocks('StepAdaptor')


@LEARNED
def test_a_checkpoint_of_a_network_keeps_it(models, learned):
    def build(**kwargs):
        return models.build(dict(
            type='StepResNet', depth=18, base_channels=8, stem_channels=8,
            step=dict(type='ConstantStep', learned=learned, **kwargs)))

    torch.manual_seed(0)
    source, net = build(value=.7), build()
    net.load_state_dict(source.state_dict())
    assert len(net.steps()) == 5 and all(step.loaded for step in net.steps())
    images = torch.randn(2, 3, 32, 32)
    for a, b in zip(net.eval()(images), source.eval()(images)):
        assert torch.equal(a, b)
    plain = {key: value for key, value in source.state_dict().items()
             if '.step.' not in key}
    fresh = build()
    fresh.load_state_dict(plain, strict=False)
    assert all((step.value == 1).all() for step in fresh.steps())


@pytest.mark.parametrize('wrong, match', [
    *((dict(value=value), f'step.value: expected .*got {value!r}')
      for value in (math.nan, math.inf, -math.inf, -1, True, '0.5')),
    (dict(value=[.5]), r'step.value: expected .*got \[0.5\]'),
    (dict(learned=1), 'step.learned: expected True or False, got 1'),
    (dict(learned=None), 'step.learned: expected True or False, got None')])
def test_wrong_arguments(wrong, match):
    with pytest.raises(ValueError, match=match):
        ConstantStep(5, **wrong)


def test_it_tells_its_arguments():
    assert 'value=0.2689, learned=True' in repr(ConstantStep(5, learned=True))
    assert not isinstance(ConstantStep(5).value, nn.Parameter)
