"""Arguments and weights of the ResNets for small images."""

#: Layers of depth that one block in each of the three stages adds.
LAYERS = dict(bottleneck=9, basic=6)


def cifar_stage_blocks(depth: int, block: str) -> tuple[int, int, int]:
    """Blocks of each of the three stages: 9n+2 or 6n+2 layers.

    Args:
        depth (int): layers: 9n+2 with bottlenecks, 6n+2 with basic blocks.
        block (str): ``'bottleneck'`` or ``'basic'``.

    Returns:
        tuple[int, int, int]: n, three times.

    Raises:
        ValueError: on another ``block`` or ``depth``.
    """
    if block not in LAYERS:
        raise ValueError(f'backbone.block: expected one of {sorted(LAYERS)}, '
                         f'got {block!r}; choose one of these')
    layers = LAYERS[block]
    if type(depth) is not int or depth < 2 + layers or (depth - 2) % layers:
        raise ValueError(
            f'backbone.depth: expected {layers}n+2 with block={block!r}, got '
            f'{depth!r}; take one such as {2 * layers + 2}, {3 * layers + 2} '
            f"or {18 * layers + 2}, or type='StepResNet_CIFAR' for "
            "mmpretrain's own depths, 18 to 152")
    return ((depth - 2) // layers, ) * 3


def check_preact(preact: bool, zero_init_residual: bool,
                 downsample_norm_cfg: dict | None) -> None:
    """Check ``preact``, and arguments that pre-activation has no place for.

    Raises:
        ValueError: if one is wrong.
    """
    if type(preact) is not bool:
        raise ValueError('backbone.preact: expected True or False, got '
                         f'{preact!r}; choose one of these')
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
    """Check that weights of the whole backbone are of its layout.

    Args:
        preact (bool): whether the backbone is pre-activation.
        weights (dict): those to be loaded into it.

    Raises:
        ValueError: if they are of the other layout.
    """
    if not {'conv1.weight', 'layer3.0.conv1.weight'} <= set(weights):
        return  # not all of a ResNet's
    given = any(key.startswith('end_norm.') for key in weights)
    if given != preact:
        raise ValueError(
            f'backbone.preact: expected weights with preact={preact}, got '
            f'some with preact={given}; set preact={given}, or load other '
            'weights')
