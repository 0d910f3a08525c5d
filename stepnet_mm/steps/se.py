"""Squeeze-and-excitation."""
from mmengine.registry import MODELS
from torch import Tensor

from .base import StepSize
from .excitation import Excitation, Gate
from .pooling import global_mean


@MODELS.register_module()
class SEAttention(StepSize):
    r"""Squeeze-and-excitation (Hu et al., CVPR 2018, Eq. 2 and 3).

    .. math:: \Delta t = \sigma(W_2 ReLU(W_1 GAP(f) + b_1) + b_2)

    2C²/r + C/r + C parameters. The hidden width is C/r exactly, where
    mmpretrain's SELayer rounds it to a multiple of 8.

    Args:
        in_channels (int): C.
        reduction (int): r. Defaults to 16.
        bias (bool): whether the layers have biases. Defaults to True.
        init_gate (float, optional): Δt where the logits are 0, in (0, 1), by a
            constant that is added to them and that checkpoints do not hold.
            Defaults to 1/2, as published.

    Raises:
        ValueError: if r is not a positive divisor of C, or ``init_gate`` not
            in (0, 1).
    """
    pools_only = True

    def __init__(self,
                 in_channels: int,
                 reduction: int = 16,
                 bias: bool = True,
                 init_gate: float | None = None):
        super().__init__()
        self.excitation = Excitation(in_channels, reduction, bias)
        self.gate = Gate(init_gate)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (N, C, 1, 1), in (0, 1)."""
        return self.gate(self.excitation(global_mean(residual)))
