"""Depths of the ResNets for small images."""

#: Layers of depth that one block in each of the three stages adds.
LAYERS = dict(bottleneck=9, basic=6)


def cifar_stage_blocks(depth: int, block: str) -> tuple:
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
        raise ValueError(f'backbone.block: got {block!r}, expected one of '
                         f'{sorted(LAYERS)}')
    step = LAYERS[block]
    if type(depth) is not int or depth < 2 + step or (depth - 2) % step:
        raise ValueError(
            f'backbone.depth: got {depth!r}, expected {step}n+2 with '
            f"block='{block}', as {2 * step + 2}, {3 * step + 2} or "
            f"{18 * step + 2}; mmpretrain's own depths, 18 to 152, are those "
            "of type='StepResNet_CIFAR'")
    return ((depth - 2) // step, ) * 3
