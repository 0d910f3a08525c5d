"""One step size for every input."""
import math

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .initial_step import InitialStep


@MODELS.register_module()
class ConstantStep(InitialStep):
    r"""One step size for every input: StepNet without its adaptation.

    .. math:: \Delta t_c = v_c

    With ``learned`` v is a parameter per channel, as in LayerScale (Touvron
    et al., ICCV 2021, Eq. 4), C parameters and nothing that keeps them
    positive; without it v stays at ``value``, 0 parameters. A control for
    StepAdaptor: by default it stands in the same blocks and starts at the
    same step size. A checkpoint keeps v either way.

    Args:
        in_channels (int): C.
        value (float, optional): v at the start, at least 0. Defaults to
            StepAdaptor's: 0.2689 from scratch, 1 in a pretrained block.
        learned (bool): whether v is learned. Defaults to False.

    Raises:
        ValueError: if ``value`` is negative, infinite or NaN.

    Examples:
        >>> ConstantStep(64, value=.3)(torch.ones(1, 64, 7, 7)).unique()
        tensor([0.3000])
    """
    pools_only = True
    value: Tensor

    def __init__(self, in_channels: int, value: float | None = None,
                 learned: bool = False):
        super().__init__(value)
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(
                'backbone.step.value: expected a finite number of at least 0, '
                f"got {value!r}; leave it out for StepAdaptor's start")
        steps = torch.empty(in_channels)
        if learned:
            self.value = nn.Parameter(steps)
        else:
            self.register_buffer('value', steps)
        self.init_weights()

    def set_start(self) -> None:
        """Set v to ``init_step``."""
        nn.init.constant_(self.value, self.init_step)

    def step_size(self, identity: Tensor, residual: Tensor) -> Tensor:
        """Δt of shape (1, C, 1, 1)."""
        return self.value.view(1, -1, 1, 1)
