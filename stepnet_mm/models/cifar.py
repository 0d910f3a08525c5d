"""Depths of the ResNets for small images."""

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
