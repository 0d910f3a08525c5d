"""Arguments and weights of the ResNets for small images."""
from .backbone import check_choice

#: Layers of depth that one block in each of the three stages adds.
LAYERS = dict(bottleneck=9, basic=6)


def blocks_per_stage(depth: int, block: str) -> int:
    """The n of a depth of 9n+2 with bottlenecks, 6n+2 with basic blocks.

    Raises:
        ValueError: on another ``block`` or ``depth``.
    """
    check_choice('block', block, [*LAYERS])
    layers = LAYERS[block]
    if type(depth) is not int or depth < 2 + layers or (depth - 2) % layers:
        raise ValueError(
            f'backbone.depth: expected {layers}n+2 with block={block!r}, got '
            f'{depth!r}; take one such as {2 * layers + 2}, {3 * layers + 2} '
            f"or {18 * layers + 2}, or type='StepResNet_CIFAR' for "
            "mmpretrain's depths, 18 to 152")
    return (depth - 2) // layers


def check_preact(preact: bool, zero_init_residual: bool,
                 downsample_norm_cfg: dict | None) -> None:
    """Raise ValueError on arguments that do not go with pre-activation."""
    check_choice('preact', preact, [True, False])
    if preact and zero_init_residual:
        raise ValueError(
            'backbone.zero_init_residual: expected False with preact=True, '
            'got True, with which the ReLU behind the last norm would pass '
            'no gradient; leave it out')
    if preact and downsample_norm_cfg is not None:
        raise ValueError(
            'backbone.downsample_norm_cfg: expected none with preact=True, '
            f'whose shortcuts have no norm, got {downsample_norm_cfg}; leave '
            'it out')


def check_layout(preact: bool, weights: dict) -> None:
    """Raise ValueError on a whole network's weights of the other layout."""
    if not {'conv1.weight', 'layer3.0.conv1.weight'} <= set(weights):
        return  # not all of a ResNet's
    given = any(key.startswith('end_norm.') for key in weights)
    if given != preact:
        raise ValueError(
            f'backbone.preact: expected weights with preact={preact}, got '
            f'some with preact={given}; set preact={given}, or load other '
            'weights')
