import pytest
import torch
from mmengine.registry import init_default_scope

from stepnet_mm.steps import (
    SEAttention,
    StepAdaptor,
    StepSize,
    build_step,
)
from stepnet_mm.steps.base import default_blocks


def test_a_step_that_sees_f_alone_takes_two_states_or_one():
    step = build_step(dict(type='ToyStep', start=.5), 4)
    x, f = torch.randn(2, 2, 4, 3, 3)
    expected = f * torch.sigmoid(.5 * f.mean((2, 3), keepdim=True) + 1)
    torch.testing.assert_close(step(f), expected)
    assert torch.equal(step(x, f), step(f))


def test_a_step_that_needs_x_t_refuses_f_alone():
    step = build_step('StepAdaptor', 4)
    with pytest.raises(ValueError, match=r'backbone\.step'):
        step(torch.randn(2, 4, 3, 3))


def test_a_subclass_may_read_more_than_its_base():

    class Reading(SEAttention):
        pass

    assert SEAttention.pools_only and not Reading.pools_only


def test_another_module_of_the_name_in_the_scope(monkeypatch):
    """A user's own attention, registered with mmdet."""
    registry = pytest.importorskip('mmdet.registry').MODELS
    init_default_scope('mmdet')
    monkeypatch.setitem(registry.module_dict, 'SEAttention', torch.nn.Linear)
    assert type(build_step('SEAttention', 16)) is SEAttention
    assert default_blocks('SEAttention') == 'all'


@pytest.mark.parametrize('cfg', [
    'Foo', dict(type='Conv2d'), dict(), 3, '', dict(type='mmdet.')])
def test_unknown_step_type(cfg):
    with pytest.raises(ValueError, match=r'backbone\.step\.type'):
        build_step(cfg, 4)


def test_unknown_argument():
    with pytest.raises(ValueError, match=r"backbone\.step: .*'input'"):
        build_step(dict(type='StepAdaptor', input='both'), 4)


def test_a_class_is_a_type_and_may_pass_arguments_on():

    class Passing(StepAdaptor):

        def __init__(self, channels, **kwargs):
            super().__init__(channels, **kwargs)

    cfg = dict(type=Passing, inputs='next')
    step = build_step(cfg, 4)
    assert isinstance(step, Passing) and step.inputs == 'next'
    assert cfg == dict(type=Passing, inputs='next')


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
    'StepAdaptor', 'SRMAttention',
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
