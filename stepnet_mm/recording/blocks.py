"""Finds residual blocks, and where each shows its x_t, f and Δt."""
from dataclasses import dataclass
from typing import Optional

from torch import nn

from ..steps import StepSize


@dataclass(frozen=True)
class ResidualBlock:
    """Where a residual block shows the terms of Eq. 7.

    Attributes:
        name (str): its name in the model.
        stage (int): which stage it belongs to, from 1.
        position (int): its position in the stage, from 0.
        module (nn.Module): the block.
        identity (nn.Module | None): the module whose output is x_t; None
            where x_t is the block's input.
        residual (nn.Module): the last module before the sum. Its output is
            f, unless it is ``step``: then its last input is.
        step (StepSize | None): the known gate at the end of the residual,
            which counts as Δt.
    """
    name: str
    stage: int
    position: int
    module: nn.Module
    identity: Optional[nn.Module]
    residual: nn.Module
    step: Optional[StepSize]


def find_residual_blocks(model: nn.Module) -> list:
    """The residual blocks of a model, in the order of its modules.

    Found are the blocks of the ResNet families of mmdet and mmpretrain, ours
    among them: by their parts ``conv{i}``, ``norm{i}`` and ``downsample``.
    The children of one container are one stage.

    Args:
        model (nn.Module): any model.

    Returns:
        list[ResidualBlock]: all blocks, each stage's first one included.

    Raises:
        ValueError: if there is none.
    """
    blocks, stages = [], {}
    for name, module in model.named_modules():
        if not _is_residual_block(module):
            continue
        parent = name.rpartition('.')[0]
        position = stages.setdefault(parent, [len(stages) + 1, -1])
        position[1] += 1
        step = _step(module)
        blocks.append(
            ResidualBlock(name, *position, module, module.downsample, step
                          or _last_of_residual(module), step))
    if not blocks:
        raise ValueError(
            f'{type(model).__name__} has no residual block that is known '
            "here: expected a ResNet of mmdet's or mmpretrain's family")
    return blocks


def _is_residual_block(module: nn.Module) -> bool:
    return hasattr(module, 'downsample') and hasattr(
        module, 'conv1') and _last_norm(module) is not None


def _last_norm(module: nn.Module) -> Optional[nn.Module]:
    last = 3 if hasattr(module, 'conv3') else 2
    return getattr(module, f'norm{last}', None)


def _end_plugins(module: nn.Module) -> list:
    names = getattr(module, 'after_conv3_plugin_names', ())
    return [getattr(module, name) for name in names]


def _last_of_residual(module: nn.Module) -> nn.Module:
    return ([_last_norm(module)] + _end_plugins(module))[-1]


def _step(module: nn.Module) -> Optional[StepSize]:
    step = getattr(module, 'step', None) or _last_of_residual(module)
    return step if isinstance(step, StepSize) else None
