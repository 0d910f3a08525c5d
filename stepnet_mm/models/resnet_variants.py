"""Arguments and weights of other variants of ResNet."""
import re
import warnings
from collections.abc import Iterable

from ..utils.arguments import accepted_arguments

#: Arguments of other backbones -> the backbone; the most specific first.
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
    contract_dilation="mmseg's ResNet",
    multi_grid="mmseg's ResNet",
    plugins="mmdet's ResNet",
    dcn="mmdet's ResNet",
    stage_with_dcn="mmdet's ResNet",
    drop_path_rate="mmpretrain's ResNet",
    expansion="mmpretrain's ResNet")

#: Keys of blocks that are not plain -> their backbone.
PARTS = {
    r'layer\d\.\d+\.se_layer\.': 'SEResNet',
    r'layer\d\.\d+\.conv2\.fc1\.': 'ResNeSt',
    r'layer\d\.\d+\.convs\.': 'Res2Net',
    r'layer\d\.\d+\.(conv2\.switch|rfp_conv)\.': 'DetectoRS_ResNet',
}

#: The way to a StepNet of a backbone; the others have none.
WAYS = {
    'SEResNet': "a plain ResNet with backbone.step=dict(type='SEAttention') "
                'comes close, with other weights',
    'ResNeXt': "set backbone.type='StepResNeXt'",
    "mmdet's ResNeXt": "set backbone.type='mmdet.StepResNeXt'",
    "mmpretrain's ResNeXt": "set backbone.type='mmpretrain.StepResNeXt'",
    'RegNet': "set backbone.type='mmdet.StepRegNet'",
    'HRNet': "set backbone.type='mmdet.StepHRNet'",
    "mmseg's ResNet": "set backbone.type='mmseg.StepResNet'",
    "mmdet's ResNet": "set backbone.type='mmdet.StepResNet'",
    "mmpretrain's ResNet": "set backbone.type='mmpretrain.StepResNet'",
}
NO_WAY = 'its blocks are not plain residual ones, so keep its own type'

#: The first convolution of a deep stem -> whose stem it is.
DEEP_STEMS = {
    'stem.0.weight': "mmdet's",  # and mmseg's
    'stem.0.conv.weight': "mmpretrain's",
}

#: (stem, whether shortcuts are averaged before their convolution) -> a type.
TYPES = {
    ('7 x 7', False): "'StepResNet'",
    ('7 x 7', True): "'StepResNet' with avg_down=True",
    ("mmdet's", False): "'mmdet.StepResNet' with deep_stem=True or "
                        "'mmseg.StepResNetV1c'",
    ("mmdet's", True): "'mmdet.StepResNetV1d' or 'mmseg.StepResNetV1d'",
    ("mmpretrain's", False): "'mmpretrain.StepResNetV1c'",
    ("mmpretrain's", True): "'mmpretrain.StepResNetV1d'",
    ('3 x 3', False): "mmpretrain's 'StepResNet_CIFAR' or, of a RegNet, "
                      "'mmdet.StepRegNet'",
}


def check_arguments(cls: type, arguments: Iterable[str]) -> None:
    """Check that no argument is another backbone's.

    Raises:
        TypeError: if one is; names that backbone.
    """
    accepted = accepted_arguments(cls)
    for name, owner in OWNERS.items():
        if name in arguments and name not in accepted:
            raise TypeError(
                f'backbone.{name}: expected an argument of {cls.__name__}, '
                f'got one of {owner}; {WAYS.get(owner, NO_WAY)}')


def warn_of_weights(name: str, own: dict, given: dict) -> None:
    """Warn of weights of another variant, and name it.

    They have another stem, other shortcuts or blocks that are not plain.

    Args:
        name (str): the backbone's type.
        own (dict): its state dict.
        given (dict): the one to be loaded; passes if it is no ResNet's.
    """
    if not any(key.startswith('layer1.0.') for key in given):
        return
    wrong = (_other_parts(name, [key for key in given if key not in own])
             or _other_variant(name, _variant(own), _variant(given)))
    if wrong:
        warnings.warn(f'{wrong}; missing weights are drawn anew', stacklevel=2)


def _other_variant(name: str, own: tuple, given: tuple) -> str:
    pairs = list(zip(given, own))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        variant = tuple(b if a is None else a for a, b in pairs)
        return (
            f'backbone.type: expected weights of a {name}, with '
            f'{_describe(*own)}, got some with {_describe(*variant)}; set the '
            f'type {TYPES.get(variant, "that they are of")}, or load other '
            'weights')
    return ''


def _other_parts(name: str, unused: list[str]) -> str:
    for key in unused:
        for pattern, owner in PARTS.items():
            if re.match(pattern, key):
                return (f'backbone.type: expected weights of a {name}, got '
                        f'the weights of a {owner} ({key}); '
                        f'{WAYS.get(owner, NO_WAY)}')
    return ''


def _variant(weights: dict) -> tuple:
    """Stem and averaging; None where the weights do not show it."""
    stem = averaged = None
    shape = getattr(weights.get('conv1.weight'), 'shape', ())
    if len(shape) == 4:
        stem = '{} x {}'.format(*shape[2:])
    for key, owner in DEEP_STEMS.items():
        stem = owner if key in weights else stem
    first, second = [f'layer2.0.downsample.{i}.weight' in weights
                     for i in range(2)]
    if first or second:
        averaged = not first
    return stem, averaged


def _describe(stem: str | None, averaged: bool | None) -> str:
    stem = (f'{stem} stem of three convolutions (stem.0)'
            if stem in DEEP_STEMS.values() else
            f'a stem of one convolution, {stem} (conv1)')
    return stem + (', shortcuts with an average pooling' if averaged else '')
