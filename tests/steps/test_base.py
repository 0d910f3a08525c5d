import pytest
import torch

from stepnet_mm.steps import StepSize, build_step
from stepnet_mm.steps.base import default_blocks

pytestmark = pytest.mark.core


def test_two_states_and_one_give_the_same_for_a_step_that_sees_f_alone():
    step = build_step('ToyStep', 4)
    x, f = torch.randn(2, 2, 4, 3, 3)
    assert torch.equal(step(x, f), step(f))


def test_the_residual_is_scaled_by_the_step_size():
    step = build_step(dict(type='ToyStep', start=.5), 4)
    f = torch.randn(2, 4, 3, 3)
    expected = f * torch.sigmoid(.5 * f.mean((2, 3), keepdim=True) + 1)
    torch.testing.assert_close(step(f), expected)


def test_a_step_that_needs_x_t_refuses_f_alone():
    step = build_step('StepAdaptor', 4)
    with pytest.raises(ValueError, match='backbone.step'):
        step(torch.randn(2, 4, 3, 3))


def test_the_output_has_the_dtype_of_the_residual():
    step = build_step('StepAdaptor', 4)
    x, f = torch.randn(2, 2, 4, 3, 3).bfloat16()
    assert step(x, f).dtype == torch.bfloat16


def test_delta_can_be_hooked():
    step, seen = build_step('ToyStep', 4), []
    step.delta.register_forward_hook(lambda m, a, out: seen.append(out))
    step(torch.randn(2, 4, 3, 3))
    assert seen[0].shape == (2, 4, 1, 1)


def test_a_subclass_may_read_more_than_its_base():
    from stepnet_mm.steps import SEAttention

    class Reading(SEAttention):
        pass

    assert SEAttention.pools_only and not Reading.pools_only


@pytest.mark.parametrize('cfg', [
    'Foo', dict(type='Conv2d'), dict(), 3, '', '.', dict(type='mmdet.')])
def test_unknown_step_type(cfg):
    with pytest.raises(ValueError, match='backbone.step.type.*StepAdaptor'):
        build_step(cfg, 4)


def test_unknown_argument():
    with pytest.raises(ValueError, match="step: .*'inputs'.*got.*'input'"):
        build_step(dict(type='StepAdaptor', input='both'), 4)


def test_arguments_may_be_passed_on():
    from stepnet_mm.steps import StepAdaptor

    class Passing(StepAdaptor):

        def __init__(self, channels, **kwargs):
            super().__init__(channels, **kwargs)

    step = build_step(dict(type=Passing, inputs='next'), 4)
    assert step.inputs == 'next'


def test_a_class_is_a_type_too():
    from stepnet_mm.steps import StepAdaptor
    assert isinstance(build_step(dict(type=StepAdaptor), 4), StepAdaptor)


def test_build_leaves_the_config_as_it_was():
    cfg = dict(type='StepAdaptor', init_step=.5)
    build_step(cfg, 4)
    assert cfg == dict(type='StepAdaptor', init_step=.5)


def test_default_blocks():
    assert default_blocks('StepAdaptor') == 'identity'
    assert default_blocks(dict(type='ToyStep')) == 'all'


def test_loaded_is_known_for_each_step():
    net = torch.nn.ModuleList(build_step('StepAdaptor', 4) for _ in range(2))
    state = net[0].state_dict(prefix='0.')
    net.load_state_dict(state, strict=False)
    assert net[0].loaded and not net[1].loaded
    assert not StepSize.loaded
    net.load_state_dict({}, strict=False)
    assert net[0].loaded


@pytest.mark.parametrize('cfg', [
    'StepAdaptor', 'SRMAttention', dict(type='SGEAttention', groups=2),
    dict(type='TimmAttention', name='eca')])
def test_what_is_drawn_again_is_not_loaded(cfg):
    if 'name' in cfg:
        pytest.importorskip('timm')
    step = build_step(cfg, 4)
    step.load_state_dict(step.state_dict())
    assert step.loaded
    step.init_weights()
    assert not step.loaded


def test_most_steps_cannot_start_at_one():
    step = build_step('ToyStep', 4)
    before = {k: v.clone() for k, v in step.state_dict().items()}
    step.start_pretrained()
    assert all(torch.equal(v, before[k])
               for k, v in step.state_dict().items())


def test_weights_of_another_shape_do_not_count_as_loaded():
    step = build_step(dict(type='StepAdaptor', inputs='next'), 4)
    with pytest.raises(RuntimeError, match='size mismatch'):
        step.load_state_dict(build_step('StepAdaptor', 4).state_dict())
    assert not step.loaded
