"""Weights of other variants of ResNet."""
import re
import warnings

#: Keys that the weights of one variant alone have -> the variant.
MARKS = {
    r'conv1\.weight': 'ResNet: no deep stem',
    r'stem\.0\.weight': "deep stem of mmdet and mmseg: mmdet's deep_stem=True "
                        'or StepResNetV1d, mmseg.StepResNetV1c or V1d',
    r'stem\.0\.conv\.weight': 'deep stem of mmpretrain: '
                              'mmpretrain.StepResNetV1c or V1d',
    r'layer[2-4]\.0\.downsample\.0\.weight': 'ResNet or V1c: no averaged '
                                             'shortcuts',
    r'layer[2-4]\.0\.downsample\.2\.': 'averaged shortcuts: V1d, '
                                       'avg_down=True',
    r'layer\d\.\d+\.se_layer\.': "SEResNet: near is step='SEAttention', with "
                                 'other weights',
    r'layer\d\.\d+\.conv2\.fc1\.': 'ResNeSt: no StepNet',
    r'layer\d\.\d+\.convs\.': 'Res2Net: no StepNet',
    r'layer\d\.\d+\.(conv2\.switch|rfp_conv)\.': 'DetectoRS_ResNet: no '
                                                 'StepNet',
}


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
    stages = {key.partition('.')[0] for key in own}
    found = {}
    for key in given:
        # A network of fewer stages shows nothing of the others.
        absent = key.startswith('layer') and (
            key.partition('.')[0] not in stages)
        if key in own or absent:
            continue
        found.update({variant: key for mark, variant in MARKS.items()
                      if re.match(mark, key)})
    if found:
        shown = '; '.join(f'{variant} ({key})'
                          for variant, key in found.items())
        warnings.warn(
            f'backbone.type: expected weights of a {name}, got some of '
            f'another variant ({shown}); set its type, or load other weights: '
            'missing ones are drawn anew', stacklevel=2)
