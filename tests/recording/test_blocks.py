import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks


def build(library, **kwargs):
    pytest.importorskip(f'{library}.registry')
    settings = dict(type='ResNet', depth=18, base_channels=8, stem_channels=8)
    settings.update(kwargs)
    return MODELS.build(dict(settings, type=f"{library}.{settings['type']}"))


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


def flat():
    """Two stages in one container."""
    return nn.Sequential(*[
        Mixer(*sizes) for sizes in ((3, 4), (4, 4), (4, 4), (4, 5), (5, 5),
                                    (5, 5))])


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


def pooled(blocks, x):
    """The last block's map is smaller than the others'."""
    return blocks[2](blocks[1](blocks[0](x))[:, :, ::2])


def places(model, *args, **kwargs):
    return [(b.stage, b.position)
            for b in find_residual_blocks(model, *args, **kwargs)]


def test_unknown_blocks_are_found_where_a_container_repeats_them():
    recorder = measure(unknown())
    assert recorder.blocks == ['0.1', '0.2', '2.1']
    assert recorder.stage.tolist() == [1, 1, 2]
    assert recorder.definition == 'output'


def test_stages_that_share_a_container_are_told_apart_by_shape():
    """A block left out keeps its place."""
    model = flat()
    run = lambda: model(torch.randn(1, 3, 4, 4))  # noqa: E731
    found = find_residual_blocks(model, run=run)
    assert [(b.stage, b.position) for b in found] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert measure(model, blocks=found).blocks == ['1', '2', '4', '5']
    assert places(model, '[1245]', run=run) == [
        (1, 1), (1, 2), (2, 1), (2, 2)]
    assert places(model, '[45]', run=run) == [(1, 1), (1, 2)]


def test_splitting_by_shape_keeps_stages_and_modes():
    """Also where only some of a container's blocks have shortcuts."""
    pytest.importorskip('mmpretrain.registry')
    model = MODELS.build(dict(type='mmpretrain.MobileNetV2', widen_factor=.25))
    model.train()
    model.layer1.eval()  # as frozen stages are
    modes = [m.training for m in model.modules()]
    split = find_residual_blocks(
        model, run=lambda: model(torch.randn(1, 3, 32, 32)))
    assert split == find_residual_blocks(model)
    assert [m.training for m in model.modules()] == modes


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
    (unknown, dict(definition='residual'), "expected 'output'"),
    (unknown, dict(blocks='layer9.*'), 'matches no module'),
    (unknown, dict(blocks='layer['), 'unterminated'),
    (lambda: Running(pooled), {}, 'blocks.2: expected the shape of blocks.1'),
    (lambda: nn.Sequential(Mixer(3), Mixer(3, 4)), {},
     '1: .*output has the shape of its'),
    (lambda: nn.Sequential(InPlace(3), InPlace(3)), {}, 'in place'),
    (lambda: nn.Sequential(*[nn.Conv2d(3, 3, 3) for _ in range(4)]), {},
     'got no residual block'),
    (lambda: nn.Sequential(Running(folded), nn.Sequential(
        Mixer(3), Mixer(3))), {}, 'got 8 maps of 2 images')])
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
