"""Where the last norm of a residual starts."""
from mmengine.model import BaseInit
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import nn


@WEIGHT_INITIALIZERS.register_module()
class LastNorm(BaseInit):
    """γ of each residual's last norm at ``val``, β at 0: an ``init_cfg``.

    f of a ResNet then starts as with a constant Δt of ``val``, and its
    gradient is not scaled from then on. List it after the entry that
    initialises the norms.

    Args:
        val (float): γ.
        identity (bool): whether in the blocks with an identity shortcut
            alone, as :class:`.ConstantStep`. Defaults to True.

    Raises:
        ValueError: in a network without such blocks, or with
            ``zero_init_residual``, which the library applies later.
    """

    def __init__(self, val: float, identity: bool = True):
        super().__init__()
        self.val, self.identity = val, identity

    def __call__(self, module: nn.Module) -> None:
        """Set the norms of all blocks of a ResNet."""
        norms = [
            getattr(block, 'norm3' if hasattr(block, 'conv3') else 'norm2')
            for block in module.modules()
            if hasattr(block, 'downsample') and hasattr(block, 'norm2')
            and not (self.identity and block.downsample)]
        if not norms or getattr(module, 'zero_init_residual', False):
            raise ValueError(
                'init_cfg: LastNorm: expected a ResNet with '
                f'zero_init_residual=False, got {type(module).__name__} with '
                f'{len(norms)} blocks to set; leave LastNorm out')
        for norm in norms:
            nn.init.constant_(norm.weight, self.val)
            nn.init.zeros_(norm.bias)
