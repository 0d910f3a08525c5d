"""NSI of other architectures against values taken by other means."""
import pytest
import torch
import torchvision
from torch import nn

from stepnet_mm.recording import TrajectoryRecorder, find_residual_blocks
from stepnet_mm.stiffness import neural_stiffness_index

SMALL = dict(base_channels=8, stem_channels=8)
#: Post-activation ResNets of the mm libraries, by registry.
MM_RESNETS = [
    ('mmdet', dict(type='ResNet', depth=50, **SMALL)),
    ('mmdet', dict(type='StepResNet', depth=18, step_blocks='all', **SMALL)),
    ('mmdet', dict(type='ResNeXt', depth=50, groups=4, base_width=4,
                   **SMALL)),
    ('mmdet', dict(type='Res2Net', depth=50, scales=4, base_width=4,
                   **SMALL)),
    ('mmdet', dict(type='RegNet', arch='regnetx_400mf')),
    ('mmpretrain', dict(type='ResNeXt', depth=50, groups=4,
                        width_per_group=32, **SMALL)),
    ('mmpretrain', dict(type='Res2Net', depth=50, scales=4, base_width=32,
                        **SMALL)),
    ('mmpretrain', dict(type='RegNet', arch='regnetx_400mf')),
    ('mmpretrain', dict(type='StepResNet', depth=50, step='SEAttention',
                        **SMALL)),
]
#: Backbones whose blocks have no activation after the sum.
PLAIN_SUMS = [
    ('mmpretrain', dict(
        type='StepVisionTransformer', img_size=32, patch_size=8, arch=dict(
            embed_dims=32, num_layers=4, num_heads=4,
            feedforward_channels=64))),
    ('mmpretrain', dict(type='SwinTransformer', arch=dict(
        embed_dims=24, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 8]),
        pad_small_map=True)),
    ('mmpretrain', dict(type='ConvNeXt', arch='atto')),
    ('mmdet', dict(type='SwinTransformer', embed_dims=24, window_size=2)),
]


def named(cases):
    return pytest.mark.parametrize(
        'library, cfg', cases,
        ids=[f"{library}-{cfg['type']}" for library, cfg in cases])


def build(library, cfg):
    torch.manual_seed(0)
    model = pytest.importorskip(f'{library}.registry').MODELS.build(
        dict(cfg, type=f"{library}.{cfg['type']}"))
    for module in model.modules():  # residuals that start at 0 say nothing
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, .5, 1.5)
    model.eval()
    return model


def measure(model, **kwargs):
    edge = getattr(model, 'img_size', (32, 32))[0]
    with TrajectoryRecorder(model, **kwargs) as recorder, torch.no_grad():
        model(torch.randn(2, 3, edge, edge))
    return recorder


class LastInput(nn.Module):
    """In the place of an activation: keeps what went in last."""

    def __init__(self, activation):
        super().__init__()
        self.activation = activation

    def forward(self, x):
        self.seen = x.clone()
        return self.activation(x)


def observe(model, block, activation):
    """x_t, x_t + f Δt and Δt of a block, by other hooks than ours."""
    seen = {}
    module = block.module
    spy = LastInput(getattr(module, activation))
    setattr(module, activation, spy)
    module.register_forward_pre_hook(
        lambda _, args: seen.update(x=args[0].clone()))
    module.register_forward_hook(lambda *_: seen.update(sum=spy.seen))
    if block.step:
        block.step.delta.register_forward_hook(
            lambda _, args, output: seen.update(step=output.clone()))
    return seen


def assert_equals_observation(model, activation='relu'):
    blocks = [b for b in find_residual_blocks(model) if b.position]
    seen = [observe(model, block, activation) for block in blocks]
    recorder = measure(model)
    assert recorder.definition == 'residual'
    expected = torch.stack([
        neural_stiffness_index(s['x'], s['sum'], s.get('step', 1.))
        for s in seen
    ], 1)
    assert (expected > 0).all()
    torch.testing.assert_close(recorder.nsi, expected, rtol=1e-3, atol=0)
    steps = [s['step'].flatten(1).mean(1) if 'step' in s else
             torch.full((2, ), torch.nan) for s in seen]
    torch.testing.assert_close(
        recorder.step, torch.stack(steps, 1), equal_nan=True)
    return recorder


@pytest.mark.core
@named(MM_RESNETS)
def test_resnets_of_the_mm_libraries(library, cfg):
    recorder = assert_equals_observation(build(library, cfg))
    stages = recorder.stage.tolist()
    assert stages == sorted(stages)
    assert {*stages} == {*range(5 - len({*stages}), 5)}


@pytest.mark.core
def test_a_projected_identity_is_the_state_where_the_last_block_projects():
    layers = pytest.importorskip('mmdet.models.layers')
    blocks = pytest.importorskip('mmdet.models.backbones.resnet')
    stage = layers.ResLayer(
        blocks.BasicBlock, 4, 8, 2, downsample_first=False).eval()
    last, = [b for b in find_residual_blocks(stage) if b.position]
    seen = observe(stage, last, 'relu')
    with TrajectoryRecorder(stage) as recorder, torch.no_grad():
        stage(torch.randn(2, 4, 8, 8))
        identity = stage[1].downsample(seen['x'])
    torch.testing.assert_close(
        recorder.nsi[:, 0], neural_stiffness_index(identity, seen['sum']),
        rtol=1e-3, atol=0)


@pytest.mark.core
def test_the_se_layer_of_mmpretrain_is_the_step_size():
    recorder = assert_equals_observation(
        build('mmpretrain', dict(type='SEResNet', depth=50, **SMALL)))
    assert all(type(b.step.module).__name__ == 'SELayer'
               and b.other_gates == () for b in recorder.found)


@pytest.mark.core
def test_a_resnet_of_torchvision():
    assert_equals_observation(torchvision.models.resnet18().eval())


@pytest.mark.core
@pytest.mark.parametrize('name, gates', [
    ('resnet26', ()), ('seresnet18', ('se', ))])
def test_resnets_of_timm(name, gates):
    """A gate that is not known does not count, and is listed."""
    timm = pytest.importorskip('timm')
    recorder = assert_equals_observation(
        timm.create_model(name, zero_init_last=False).eval(),
        'act2' if name.endswith('18') else 'act3')
    assert all(b.step is None and b.other_gates == gates
               for b in recorder.found)


@pytest.mark.core
@named(PLAIN_SUMS)
def test_blocks_without_an_activation_after_the_sum(library, cfg):
    model = build(library, cfg)
    blocks = [b for b in find_residual_blocks(model) if b.position]
    seen = {}
    for b in blocks:
        b.module.register_forward_hook(
            lambda m, args, output, name=b.name: seen.update(
                {name: neural_stiffness_index(args[0], output)}))
    recorder = measure(model)
    assert recorder.definition == 'residual'
    assert recorder.blocks == list(seen)
    assert torch.equal(recorder.nsi, torch.stack(list(seen.values()), 1))
    assert (recorder.nsi > 0).all() and recorder.step.isnan().all()
    gates = ('step', ) if cfg['type'].startswith('Step') else ()
    assert all(b.step is None and b.other_gates == gates for b in blocks)


@pytest.mark.core
@pytest.mark.parametrize('name, stages', [
    ('convnext_tiny', [3, 3, 9, 3]), ('swin_t', [2, 2, 6, 2]),
    ('vit_b_16', [12])])
def test_other_networks_of_torchvision(name, stages):
    with torch.device('meta'):
        model = getattr(torchvision.models, name)()
    assert_stages(model, stages)


@pytest.mark.core
@pytest.mark.parametrize('name, stages', [
    ('convnext_atto', [2, 2, 6, 2]), ('vit_tiny_patch16_224', [12])])
def test_other_networks_of_timm(name, stages):
    timm = pytest.importorskip('timm')
    assert_stages(timm.create_model(name), stages)


def assert_stages(model, stages):
    found = find_residual_blocks(model)
    assert [b.stage for b in found] == [
        s for s, n in enumerate(stages, 1) for _ in range(n)]
    assert all(b.definition == 'residual' for b in found)


@pytest.mark.core
def test_a_pre_activation_block_adds_f_to_its_input():
    timm = pytest.importorskip('timm')
    model = timm.create_model('resnetv2_50').eval()
    assert_stages(model, [3, 4, 6, 3])
    block = model.stages[0].blocks[1]
    seen = {}
    block.conv3.register_forward_hook(
        lambda m, args, output: seen.update(f=output.clone()))
    block.register_forward_pre_hook(
        lambda m, args: seen.update(x=args[0].clone()))
    recorder = measure(model)
    expected = neural_stiffness_index(seen['x'], seen['x'] + seen['f'])
    torch.testing.assert_close(recorder.nsi[:, 0], expected)


class Mixer(nn.Module):
    """A block that nobody knows."""

    def __init__(self, channels, out=None):
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 1)
        self.two = nn.Conv2d(channels, out or channels, 1)
        self.keeps = out in (None, channels)

    def forward(self, x):
        y = self.two(self.one(x).tanh())
        return (x + y).relu() if self.keeps else y


def unknown():
    return nn.Sequential(
        nn.Sequential(*[Mixer(3) for _ in range(3)]), nn.Conv2d(3, 4, 1),
        nn.Sequential(*[Mixer(4) for _ in range(2)]))


def test_unknown_blocks_are_found_where_a_container_repeats_them():
    model = unknown()
    recorder = measure(model)
    assert recorder.blocks == ['0.1', '0.2', '2.1']
    assert recorder.stage.tolist() == [1, 1, 2]
    assert recorder.definition == 'output'
    seen = {}
    model[0][1].register_forward_hook(
        lambda m, args, output: seen.update(x=args[0], y=output))
    recorder = measure(model)
    assert torch.equal(recorder.nsi[:, 0],
                       neural_stiffness_index(seen['x'], seen['y']))


def test_definitions_that_unknown_blocks_do_not_have():
    with pytest.raises(ValueError, match="expected 'output'"):
        TrajectoryRecorder(unknown(), definition='residual')
    with pytest.raises(ValueError, match="definition: .*got 'mean'"):
        TrajectoryRecorder(unknown(), definition='mean')


def test_definition_output_of_known_blocks_is_their_output():
    model = build('mmpretrain', dict(type='ResNet', depth=18, **SMALL))
    block, seen = model.layer1[1], {}
    block.register_forward_hook(
        lambda m, args, output: seen.update(x=args[0], y=output))
    recorder = measure(model, definition='output')
    assert torch.equal(recorder.nsi[:, 0],
                       neural_stiffness_index(seen['x'], seen['y']))
    assert not torch.allclose(recorder.nsi, measure(model).nsi)


def flat():
    """Two stages in one container."""
    return nn.Sequential(*[
        Mixer(*sizes) for sizes in ((3, 4), (4, 4), (4, 4), (4, 5), (5, 5),
                                    (5, 5))])


def test_stages_that_share_a_container_are_told_apart_by_shape():
    model = flat()
    found = find_residual_blocks(
        model, run=lambda: model(torch.randn(1, 3, 4, 4)))
    assert [(b.stage, b.position) for b in found] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    recorder = measure(model, blocks=found)
    assert recorder.blocks == ['1', '2', '4', '5']


def test_blocks_of_unequal_shape_in_one_stage_are_refused():
    with pytest.raises(ValueError, match='3: expected the shape of 1'):
        measure(flat())
    with pytest.raises(ValueError, match='1: .*output has the shape of its'):
        measure(nn.Sequential(Mixer(3), Mixer(3, 4)))


@pytest.mark.parametrize('cfg, pattern', [
    (dict(type='ResNet', depth=34, **SMALL), r'layer3\.[2-5]'),
    # Of its blocks only some have shortcuts.
    (dict(type='MobileNetV2', widen_factor=.25), None)])
def test_splitting_by_shape_keeps_what_the_containers_say(cfg, pattern):
    model = build('mmpretrain', cfg)
    split = find_residual_blocks(
        model, pattern, run=lambda: model(torch.randn(1, 3, 32, 32)))
    assert split == find_residual_blocks(model, pattern)
    assert not model.training


def test_a_block_left_out_takes_its_place_in_a_shared_container():
    model = flat()
    found = find_residual_blocks(
        model, '[1245]', run=lambda: model(torch.randn(1, 3, 4, 4)))
    assert [(b.stage, b.position) for b in found] == [
        (1, 1), (1, 2), (2, 1), (2, 2)]
    late = find_residual_blocks(
        model, '[45]', run=lambda: model(torch.randn(1, 3, 4, 4)))
    assert [(b.stage, b.position) for b in late] == [(1, 1), (1, 2)]


def test_a_pattern_chooses_blocks():
    model = build('mmpretrain', dict(type='ResNet', depth=34, **SMALL))
    recorder = measure(model, blocks=r'layer[34]\.\d+')
    assert recorder.blocks[0] == 'layer3.1' and len(recorder.blocks) == 7
    assert recorder.stage.tolist() == [1] * 5 + [2] * 2
    late = measure(model, blocks=r'layer3\.[2-5]')
    assert late.blocks == [f'layer3.{i}' for i in (2, 3, 4, 5)]
    assert late.position.tolist() == [2, 3, 4, 5]
    nested = find_residual_blocks(model, r'layer3\.\d+(\..*)?')
    assert [b.name for b in nested] == [f'layer3.{i}' for i in range(6)]


@pytest.mark.parametrize('pattern, message', [
    ('layer9.*', 'matches no module'), ('(', 'regular expression')])
def test_a_wrong_pattern(pattern, message):
    with pytest.raises(ValueError, match=message):
        find_residual_blocks(unknown(), pattern)


def test_several_backbones_are_refused_until_one_is_chosen():
    model = nn.ModuleDict({
        name: nn.ModuleDict(dict(backbone=build(
            'mmdet', dict(type='ResNet', depth=18, **SMALL))))
        for name in ('student', 'teacher')})
    with pytest.raises(ValueError, match='expected one backbone') as error:
        TrajectoryRecorder(model)
    pattern = str(error.value).split("blocks=r'")[1].split("'")[0]
    recorder = TrajectoryRecorder(model, pattern)
    assert recorder.blocks == [
        f'student.backbone.layer{stage}.1' for stage in (1, 2, 3, 4)]


def test_only_the_backbone_of_a_detector_is_looked_into():
    model = nn.ModuleDict(dict(
        head=nn.Sequential(*[Mixer(3) for _ in range(3)]),
        backbone=unknown()))
    assert TrajectoryRecorder(model).blocks == [
        'backbone.0.1', 'backbone.0.2', 'backbone.2.1']


class InPlace(Mixer):

    def forward(self, x):
        return x.add_(self.two(self.one(x).tanh()))


def test_a_block_that_changes_its_input_is_refused():
    model = nn.Sequential(*[InPlace(3) for _ in range(2)])
    with pytest.raises(ValueError, match='in place'):
        measure(model)


def test_plain_stacks_of_convolutions_are_no_blocks():
    from mmcv.cnn import ConvModule
    model = nn.Sequential(*[ConvModule(3, 3, 3, padding=1) for _ in range(4)])
    with pytest.raises(ValueError, match='got no residual block'):
        TrajectoryRecorder(model)


class Running(nn.Module):
    """Blocks of a kind, as a function runs them."""

    def __init__(self, run, kind=Mixer):
        super().__init__()
        self.run = run
        self.blocks = nn.ModuleList(kind(3) for _ in range(3))

    def forward(self, x):
        return self.run(self.blocks, x)


def one_by_one(blocks, x):
    for block in blocks:
        x = block(x)
    return x


class Odd(Mixer):

    def forward(self, *, hidden):
        return super().forward(hidden), None


def test_blocks_that_take_keywords_and_give_tuples():

    def run(blocks, x):
        for block in blocks:
            x = block(hidden=x)[0]
        return x

    assert measure(Running(run, Odd)).nsi.shape == (2, 2)


def test_maps_that_are_no_samples_are_refused():
    model = nn.Sequential(
        Running(lambda blocks, x: one_by_one(
            blocks, x.reshape(4 * len(x), 3, 16, 16))),
        nn.Sequential(Mixer(3), Mixer(3)))
    recorder = measure(model)
    with pytest.raises(ValueError, match='got 8 maps of 2 images'):
        _ = recorder.nsi


def test_blocks_that_say_they_have_no_shortcut_are_left_out():
    model = unknown()
    for block in model[0]:
        block.add_identity = False
    assert TrajectoryRecorder(model).blocks == ['2.1']


def test_a_block_of_another_class_keeps_its_place():

    class Special(Mixer):
        pass

    model = nn.Sequential(Mixer(3), Mixer(3), Special(3), Mixer(3))
    found = find_residual_blocks(model, r'\d')
    assert [(b.stage, b.position) for b in found] == [
        (1, 0), (1, 1), (1, 2), (1, 3)]


def test_blocks_may_run_in_any_order():
    model = Running(lambda blocks, x: one_by_one(blocks[::-1], x))
    with TrajectoryRecorder(model) as recorder, torch.no_grad():
        for edge in (8, 4):
            model(torch.randn(1, 3, edge, edge))
    assert recorder.nsi.shape == (2, 2)
