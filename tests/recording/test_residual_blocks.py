import copy

import pytest
import torch
from equality import registry
from resume_run import assert_same
from torch import nn
from torchvision.models import resnet18
from toy_run import hook_count

from stepnet_mm.models import add_steps
from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks
from stepnet_mm.utils.random_state import get_random_state


def build(library, depth=18, **kwargs):
    return registry(library).build(dict(
        type='ResNet', depth=depth, base_channels=8, stem_channels=8,
        **kwargs))


def measure(model, **kwargs):
    with TrajectoryRecorder(model, **kwargs) as recorder, torch.no_grad():
        model(torch.randn(2, 3, 32, 32))
    return recorder


class Mixer(nn.Module):
    """A block of no known class."""

    def __init__(self, channels, out=None):
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 1)
        self.two = nn.Conv2d(channels, out or channels, 1)
        self.keeps = out in (None, channels)

    def forward(self, x):
        y = self.two(self.one(x).tanh())
        return (x + y).relu() if self.keeps else y


class InPlace(Mixer):

    def forward(self, x):
        return x.add_(self.two(self.one(x).tanh()))


class ByKeyword(Mixer):
    """Takes no positional argument, and gives a tuple."""

    def forward(self, *, hidden):
        return super().forward(hidden), None


def unknown():
    return nn.Sequential(
        nn.Sequential(*[Mixer(3) for _ in range(3)]), nn.Conv2d(3, 4, 1),
        nn.Sequential(*[Mixer(4) for _ in range(2)]))


class Running(nn.Module):
    """Blocks of a kind, as a function runs them."""

    def __init__(self, run, kind=Mixer):
        super().__init__()
        self.run = run
        self.blocks = nn.ModuleList(kind(3) for _ in range(3))

    def forward(self, x):
        return self.run(self.blocks, x)


def folded(blocks, x):
    """The first axis is that of patches."""
    x = x.reshape(4 * len(x), 3, 16, 16)
    return blocks[2](blocks[1](blocks[0](x)))


def places(model, *args, **kwargs):
    return [(b.stage, b.position)
            for b in find_residual_blocks(model, *args, **kwargs)]


def test_a_model_that_takes_no_images():
    """Its blocks are a guess, until its inputs are given."""
    model = Running(lambda blocks, batch: nn.Sequential(*blocks)(batch['x']))
    guessed, seen = (find_residual_blocks(model, inputs=inputs) for inputs in (
        None, lambda copied: copied(dict(x=torch.randn(1, 3, 4, 4)))))
    for found, definition in ((guessed, 'output'), (seen, 'residual')):
        assert [(b.name, b.position) for b in found] == [
            ('blocks.0', 0), ('blocks.1', 1), ('blocks.2', 2)]
        assert {b.definition for b in found} == {definition}
    assert seen[1].residual is model.blocks[1].two
    outer = nn.Module()
    outer.backbone = model  # inputs are the whole model's
    found = find_residual_blocks(outer, inputs=lambda copied: copied.backbone(
        dict(x=torch.randn(1, 3, 4, 4))))
    assert [b.definition for b in found] == ['residual'] * 3
    with pytest.raises(ValueError, match='give inputs that it takes'):
        find_residual_blocks(outer, inputs=torch.randn(1, 3, 4, 4))


class Scaled(Mixer):
    """f is in no module's output, and an activation follows the sum."""

    def __init__(self, channels):
        super().__init__(channels)
        self.drop = nn.Dropout()

    def forward(self, x):
        return (x + self.drop(2 * self.two(self.one(x)))).relu()


class Nested(Mixer):
    """f is what a module deeper inside gives."""

    def __init__(self, channels):
        super().__init__(channels)
        self.layers = nn.ModuleList([self.one, self.two])
        del self.one, self.two

    def forward(self, x):
        return (x + self.layers[1](self.layers[0](x))).relu()


@pytest.mark.parametrize('kind', [Scaled, Nested, InPlace])
def test_f_is_read_wherever_a_module_shows_it(kind):
    model = nn.Sequential(*[kind(3) for _ in range(2)]).eval()
    images = torch.randn(2, 3, 8, 8)
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        model(images.clone())
        x = model[0](images.clone())
        one, two = [m for m in model[1].modules() if isinstance(m, nn.Conv2d)]
        f = two(one(x).tanh() if kind is InPlace else one(x))
    f = 2 * f if kind is Scaled else f
    assert recorder.blocks == ['1'] and recorder.definition == 'residual'
    torch.testing.assert_close(
        recorder.nsi[:, 0], f.flatten(1).norm(dim=1) / x.flatten(1).norm(
            dim=1))


class Labelled(nn.Module):
    """Takes labels too, without which it fails behind its network."""

    def __init__(self):
        super().__init__()
        self.net = unknown()

    def forward(self, images, labels):
        return self.net(images).mean() + labels.sum()


@pytest.mark.parametrize('change', [
    lambda model: model.half(), lambda model: model.requires_grad_(False),
    lambda model: nn.ModuleDict(dict(backbone=model)),
    lambda model: Labelled()],
    ids=['half', 'frozen', 'backbone', 'labels'])
def test_the_search_changes_nothing(change):
    model = change(unknown()).train()
    inner = next(m for m in model.modules() if isinstance(m, nn.Sequential))
    inner[0][1].eval()
    calls, before = [], copy.deepcopy(model.state_dict())
    model.register_forward_hook(lambda *args: calls.append(args))
    modes = [m.training for m in model.modules()]
    grads = [p.requires_grad for p in model.parameters()]
    state = get_random_state()
    names = [b.name for b in find_residual_blocks(model)]
    assert [name[-3:] for name in names] == ['0.0', '0.1', '0.2', '2.0', '2.1']
    assert_same(get_random_state(), state)
    assert_same(dict(model.state_dict()), dict(before))
    assert [m.training for m in model.modules()] == modes
    assert [p.requires_grad for p in model.parameters()] == grads
    assert not calls and hook_count(model) == 1


def test_stages_that_share_a_container_are_told_apart_by_shape():
    """A block left out, or without a shortcut, keeps its place."""
    model = nn.Sequential(*[
        Mixer(*sizes) for sizes in (
            (3, 4), (4, 4), (4, 4), (4, 5), (5, 5), (5, 5))])
    assert measure(model).blocks == ['1', '2', '4', '5']
    for inputs in (None, torch.randn(1, 3, 4, 4)):
        both = [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert places(model, inputs=inputs) == both
        assert places(model, r'\d', inputs=inputs) == [
            (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
        assert places(model, '[45]', inputs=inputs) == [(1, 1), (1, 2)]


def test_a_pattern_chooses_blocks_which_keep_their_place():
    """Of nested modules the outer one counts; their class does not."""
    late = TrajectoryRecorder(build('mmpretrain', depth=34),
                              r'layer3\.[2-5]|layer4\.\d+(\..*)?')
    assert late.blocks == [f'layer3.{i}' for i in (2, 3, 4, 5)] + [
        'layer4.1', 'layer4.2']
    assert late.stage.tolist() == [1] * 4 + [2] * 2
    assert late.position.tolist() == [2, 3, 4, 5, 1, 2]
    mixed = nn.Sequential(Mixer(3), Mixer(3), InPlace(3), Mixer(3))
    assert places(mixed, r'\d') == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_several_backbones_are_refused_until_one_is_chosen():
    model = nn.ModuleDict({
        name: nn.ModuleDict(dict(backbone=build('mmdet')))
        for name in ('student', 'teacher')})
    with pytest.raises(ValueError, match='expected one backbone') as error:
        TrajectoryRecorder(model)
    pattern = str(error.value).split("blocks=r'")[1].split("'")[0]
    assert TrajectoryRecorder(model, pattern).blocks == [
        f'student.backbone.layer{stage}.1' for stage in (1, 2, 3, 4)]


@pytest.mark.parametrize('make, kwargs, match', [
    (lambda: nn.Sequential(*[nn.Sequential(Mixer(3), Mixer(3))
                             for _ in range(2)]),
     dict(blocks=r'\d', definition='residual'), "expected 'output'"),
    (unknown, dict(blocks='layer9.*'), 'matches no module'),
    (unknown, dict(blocks='layer['), 'unterminated'),
    (lambda: nn.Sequential(*[nn.Sequential(InPlace(3), InPlace(3))
                             for _ in range(2)]), dict(blocks=r'\d'),
     'in place'),
    (lambda: Running(folded), {},
     'of 3 Mixer, its first axis is not that of the samples')])
def test_what_cannot_be_measured_is_refused(make, kwargs, match):
    with pytest.raises(ValueError, match=match):
        _ = measure(make(), **kwargs).nsi


@pytest.mark.parametrize('run, kind', [
    (lambda b, x: b[0](b[1](b[2](x))), Mixer),
    (lambda b, x: b[1](hidden=b[0](hidden=x)[0]) and b[2](hidden=x),
     ByKeyword)])
def test_blocks_run_in_any_order_and_with_any_arguments(run, kind):
    assert measure(Running(run, kind)).nsi.shape == (2, 2)


STEP, CONTEXT = dict(type='ToyStep'), dict(type='ContextBlock', ratio=.25)


@pytest.mark.parametrize('plugins, position, step, residual', [
    ([STEP], 'after_conv3', 'ToyStep', 'NoneType'),
    ([STEP, CONTEXT], 'after_conv3', None, 'ContextBlock'),
    ([STEP], 'after_conv2', None, 'BatchNorm2d')])
def test_a_step_counts_where_it_is_the_last_plugin(
        plugins, position, step, residual):
    model = build('mmdet', depth=50, plugins=[
        dict(cfg=cfg, position=position,
             stages=(False, True, False, False)) for cfg in plugins])
    blocks = {block.name: block for block in find_residual_blocks(model)}
    block = blocks['layer2.1']
    assert step == (block.step and type(block.step.module).__name__)
    assert type(block.residual).__name__ == residual
    assert blocks['layer1.1'].step is None


def test_steps_in_blocks_of_another_library_count():
    """Also where the first blocks of stages have none."""
    model = resnet18().eval()
    stock = [(b.name, b.stage, b.position)
             for b in find_residual_blocks(model)]
    steps = add_steps(model, dict(type='StepAdaptor', init_step=.5))
    found = find_residual_blocks(model)
    assert [(b.name, b.stage, b.position) for b in found] == stock
    assert [b.name for b in found if b.step] == [*steps]
    recorder, update = (TrajectoryRecorder(model, definition=definition)
                        for definition in ('residual', 'update'))
    with recorder, update, torch.no_grad():
        model(torch.randn(2, 3, 32, 32))
    torch.testing.assert_close(
        update.nsi, recorder.nsi * .5, rtol=1e-4, atol=0)
