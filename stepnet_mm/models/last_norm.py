"""Where the last norm of a residual starts."""
from typing import Any

from mmengine.model import BaseInit
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import nn


@WEIGHT_INITIALIZERS.register_module()
class LastNorm(BaseInit):
    """γ of each residual's last norm at ``val``, β at 0; an ``init_cfg``.

    In a post-activation ResNet f ends in that norm, so f starts as with a
    constant Δt of ``val``; its gradient is not scaled from then on. Comes
    behind the entry that starts the norms.

    Args:
        val (float): γ.
        identity (bool): whether in the blocks with an identity shortcut
            alone, as :class:`.ConstantStep`. Defaults to True.
    """

    def __init__(self, val: float, identity: bool = True):
        super().__init__()
        self.val, self.identity = val, identity

    def __call__(self, module: nn.Module) -> None:
        """Set the norms of all blocks of a ResNet."""
        for block in module.modules():
            if hasattr(block, 'conv2') and not (
                    self.identity and block.downsample is not None):
                norm: Any = (
                    block.norm3 if hasattr(block, 'conv3') else block.norm2)
                nn.init.constant_(norm.weight, self.val)
                nn.init.zeros_(norm.bias)
