"""Switchable excitation module."""
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize
from .excitation import (
    ChannelConv,
    Excitation,
    InstanceEnhancement,
    adaptive_kernel_size,
)
from .norms import in_dtype_of
from .pooling import global_mean


@MODELS.register_module()
class SEMAttention(StepSize):
    r"""Switchable excitation (Zhong et al., 2022).

    .. math::
        z = GAP(f), \quad (\alpha_1, \alpha_2, \alpha_3) = \sigma(W z + v),
        \quad \Delta t = \sigma(\alpha_1 SE(z)) \otimes
        \sigma(\alpha_2 ECA(z)) \otimes \sigma(\alpha_3 IE(z))

    SE, ECA and IE are the logits of their modules: α weights them before the
    sigmoid. ECA has the kernel that grows with C, IE starts at w = 0, b = -1.
    2C²/r + C/r + C (SE), k (ECA), 2C (IE) and 3C + 3 (W, v) parameters.

    Args:
        in_channels (int): C.
        reduction (int): r of SE. Defaults to 16.

    Raises:
        ValueError: if r is not a positive divisor of C.
    """
    pools_only = True

    def __init__(self, in_channels: int, reduction: int = 16):
        super().__init__()
        self.switch = nn.Linear(in_channels, 3)
        self.excitation = Excitation(in_channels, reduction, bias=True)
        self.conv = ChannelConv(adaptive_kernel_size(in_channels))
        self.ie = InstanceEnhancement(in_channels)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        z = global_mean(residual)
        share = self.switch(in_dtype_of(self.switch, z.flatten(1)))
        alpha = share.sigmoid()[..., None, None, None].unbind(1)
        logits = self.excitation(z), self.conv(z), self.ie(z)
        first, second, third = [(alpha[i] * u).sigmoid()
                                for i, u in enumerate(logits)]
        return first * second * third
