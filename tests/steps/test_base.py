import math

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope, Registry

from stepnet_mm.steps import SEAttention, StepAdaptor, build_step


def test_one_state_or_two():
    step, (x, f) = build_step('ToyStep', 4), torch.randn(2, 2, 4, 3, 3)
    assert torch.equal(step(x, f), step(f))
    with pytest.raises(ValueError, match=r'backbone\.step'):
        build_step('StepAdaptor', 4)(f)
    with pytest.raises(ValueError, match=r'backbone\.step, as in'):
        StepAdaptor(in_channels=4)  # as mmdet builds plugins, which see f


def test_another_module_of_the_name_in_the_scope(monkeypatch):
    """A user's own attention, registered with a library, goes first."""
    monkeypatch.setattr(MODELS, '_children', {})
    library = Registry('library', parent=MODELS, scope='library')
    own = type('Own', (SEAttention, ), {})
    with DefaultScope.overwrite_default_scope('library'):
        assert type(build_step('SEAttention', 16)) is SEAttention
        library.register_module('SEAttention', module=own)
        assert type(build_step(dict(type='SEAttention'), 16)) is own
        library.register_module(
            'SEAttention', module=torch.nn.Linear, force=True)
        with pytest.raises(ValueError, match="type: .*Linear.*StepSize"):
            build_step('SEAttention', 16)
        step = build_step('mmengine.SEAttention', 16)
        assert type(step) is SEAttention


@pytest.mark.parametrize('cfg, match', [
    *((cfg, r'backbone\.step\.type: ') for cfg in (
        'Foo', dict(type='Conv2d'), dict(), 3)),
    (dict(type='StepAdaptor', input='both'), r"backbone\.step: .*'input'"),
    ('FCAAttention', 'got 40'),  # no multiple of its 16 frequencies
    *(({'type': 'StepAdaptor', key: value}, rf'backbone\.step\.{key}: ')
      for key, value in (
        ('inputs', 'previous'), ('init_step', 0), ('init_step', 1.5),
        ('norm_cfg', dict(type='Foo')))),
    *((dict(type='ConstantStep', value=value), r'backbone\.step\.value: ')
      for value in (math.nan, -1)),
    *(({'type': f'{name}Attention', key: value}, f'^{key}: .*got {value}')
      for name, key, value in (
        ('SE', 'reduction', 0), ('SE', 'reduction', 3), ('SGE', 'groups', 3),
        ('FCA', 'dct_size', 6), ('ECA', 'kernel_size', 2)))])
def test_wrong_configs(cfg, match):
    with pytest.raises(ValueError, match=match):
        build_step(cfg, 40)


def test_each_step_knows_whether_it_is_loaded():
    net = torch.nn.ModuleList(build_step('StepAdaptor', 4) for _ in range(2))
    net.load_state_dict(net[0].state_dict(prefix='0.'), strict=False)
    assert net[0].loaded and not net[1].loaded
    net.load_state_dict({}, strict=False)
    assert net[0].loaded
    other = build_step(dict(type='StepAdaptor', inputs='next'), 4)
    with pytest.raises(RuntimeError, match='size mismatch'):
        other.load_state_dict(net[0].state_dict())
    assert not other.loaded
