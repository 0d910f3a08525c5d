import pytest
import torch
from mmengine.registry import init_default_scope

from stepnet_mm.steps import SEAttention, StepAdaptor, StepSize, build_step


def test_one_state_or_two():
    step = build_step(dict(type='ToyStep', start=.5), 4)
    x, f = torch.randn(2, 2, 4, 3, 3)
    expected = f * torch.sigmoid(.5 * f.mean((2, 3), keepdim=True) + 1)
    torch.testing.assert_close(step(f), expected)
    assert torch.equal(step(x, f), step(f))
    with pytest.raises(ValueError, match=r'backbone\.step'):
        build_step('StepAdaptor', 4)(f)


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


@pytest.mark.parametrize('cfg, match', [
    *((cfg, r'backbone\.step\.type: ') for cfg in (
        'Foo', dict(type='Conv2d'), dict(), 3, '', dict(type='mmdet.'))),
    (dict(type='StepAdaptor', input='both'), r"backbone\.step: .*'input'")])
def test_wrong_configs(cfg, match):
    with pytest.raises(ValueError, match=match):
        build_step(cfg, 4)


def test_a_class_is_a_type_and_may_pass_arguments_on():

    class Passing(StepAdaptor):

        def __init__(self, channels, **kwargs):
            super().__init__(channels, **kwargs)

    cfg = dict(type=Passing, inputs='next')
    step = build_step(cfg, 4)
    assert isinstance(step, Passing) and step.inputs == 'next'
    assert cfg == dict(type=Passing, inputs='next')


def test_each_step_knows_whether_it_is_loaded():
    net = torch.nn.ModuleList(build_step('StepAdaptor', 4) for _ in range(2))
    net.load_state_dict(net[0].state_dict(prefix='0.'), strict=False)
    assert net[0].loaded and not net[1].loaded
    assert not StepSize.loaded
    net.load_state_dict({}, strict=False)
    assert net[0].loaded
    other = build_step(dict(type='StepAdaptor', inputs='next'), 4)
    with pytest.raises(RuntimeError, match='size mismatch'):
        other.load_state_dict(net[0].state_dict())
    assert not other.loaded
