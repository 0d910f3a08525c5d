"""Which kind of ResNet arguments and weights belong to."""
import inspect
import re

#: Arguments of other backbones -> whose; the most telling ones first.
OWNERS = dict(
    scales='Res2Net',
    radix='ResNeSt',
    reduction_factor='ResNeSt',
    avg_down_stride='ResNeSt',
    se_ratio='SEResNet',
    sac='DetectoRS_ResNet',
    stage_with_sac='DetectoRS_ResNet',
    rfp_inplanes='DetectoRS_ResNet',
    output_img='DetectoRS_ResNet',
    num_branch='TridentResNet',
    test_branch_idx='TridentResNet',
    trident_dilations='TridentResNet',
    arch='RegNet',
    extra='HRNet',
    model_name='TIMMBackbone',
    groups='ResNeXt',
    base_width="mmdet's ResNeXt",
    width_per_group="mmpretrain's ResNeXt",
    plugins="mmdet's ResNet",
    dcn="mmdet's ResNet",
    stage_with_dcn="mmdet's ResNet",
    drop_path_rate="mmpretrain's ResNet",
    expansion="mmpretrain's ResNet")

#: Keys of blocks that are not plain -> whose.
PARTS = {
    r'layer\d\.\d+\.se_layer\.': 'SEResNet',
    r'layer\d\.\d+\.conv2\.fc1\.': 'ResNeSt',
    r'layer\d\.\d+\.convs\.': 'Res2Net',
    r'layer\d\.\d+\.(conv2\.switch|rfp_conv)\.': 'DetectoRS_ResNet',
}

#: What becomes of a backbone; of all others there is no StepNet.
WAYS = {
    'SEResNet': "a plain ResNet with backbone.step=dict(type='SEAttention') "
                'comes close, with weights of its own',
    'ResNeXt': "set backbone.type='StepResNeXt'",
    "mmdet's ResNeXt": "set backbone.type='mmdet.StepResNeXt'",
    "mmpretrain's ResNeXt": "set backbone.type='mmpretrain.StepResNeXt'",
    "mmdet's ResNet": "set backbone.type='mmdet.StepResNet'",
    "mmpretrain's ResNet": "set backbone.type='mmpretrain.StepResNet'",
}
NO_WAY = 'its blocks are not plain residual ones, so keep its own type'

#: (stem, whether shortcuts are averaged before their convolution) -> a type.
TYPES = {
    ('7 x 7', False): "'StepResNet'",
    ('7 x 7', True): "'StepResNet' with avg_down=True",
    ('deep', False): "'StepResNetV1c' (mmdet: 'StepResNet' with "
                     'deep_stem=True)',
    ('deep', True): "'StepResNetV1d' (or deep_stem=True, avg_down=True)",
    ('3 x 3', False): "mmpretrain's 'StepResNet_CIFAR'",
}


def check_arguments(cls: type, arguments) -> None:
    """Check that no argument is another backbone's.

    Raises:
        TypeError: if one is; names that backbone.
    """
    accepted = {name for base in cls.__mro__
                for name in inspect.signature(base.__init__).parameters}
    for name, owner in OWNERS.items():
        if name in arguments and name not in accepted:
            raise TypeError(
                f'backbone.{name}: {cls.__name__} has no such argument, it '
                f'belongs to {owner}: {WAYS.get(owner, NO_WAY)}')


def check_weights(name: str, own: dict, given: dict) -> None:
    """Check that weights are of a backbone's kind.

    Args:
        name (str): the backbone's type.
        own (dict): its state dict.
        given (dict): the one to be loaded; if it is no ResNet's it passes.

    Raises:
        ValueError: if the weights have another stem, other shortcuts or
            blocks that are not plain; names the type that they are of.
    """
    if not any(key.startswith('layer1.0.') for key in given):
        return
    _check_parts(name, [key for key in given if key not in own])
    pairs = list(zip(_kind(given), _kind(own)))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        kind = tuple(b if a is None else a for a, b in pairs)
        raise ValueError(
            f'backbone.type: {name} cannot take these weights, which have '
            f'{_describe(*kind)}: expected '
            f'{_describe(*_kind(own))}; set the type '
            f'{TYPES.get(kind, "that they are of")}, or load other weights')


def _check_parts(name: str, unused: list) -> None:
    for key in unused:
        for pattern, owner in PARTS.items():
            if re.match(pattern, key):
                raise ValueError(
                    f'backbone.type: {name} cannot take the weights of a '
                    f'{owner} ({key}): {WAYS.get(owner, NO_WAY)}')


def _kind(weights: dict) -> tuple:
    """Stem and averaging; None where the weights do not show it."""
    stem = averaged = None
    shape = getattr(weights.get('conv1.weight'), 'shape', ())
    if len(shape) == 4:
        stem = '{} x {}'.format(*shape[2:])
    elif any(key.startswith('stem.') for key in weights):
        stem = 'deep'
    first, second = [f'layer2.0.downsample.{i}.weight' in weights
                     for i in range(2)]
    if first or second:
        averaged = not first
    return stem, averaged


def _describe(stem, averaged) -> str:
    stem = ('a stem of three convolutions (stem.0)' if stem == 'deep' else
            f'a stem of one convolution, {stem} (conv1)')
    return stem + (', shortcuts with an average pooling' if averaged else '')
