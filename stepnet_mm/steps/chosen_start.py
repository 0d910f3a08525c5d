"""Steps that start at one number for every input; the constant among them."""
import math

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .base import StepSize

#: σ(-1), the step size at the start with the published w = 0 and b = -1.
PUBLISHED_STEP_SIZE = 1 / (1 + math.e)


class ChosenStart(StepSize):
    """Base of the steps that start at one number, the same for every input.

    It is the one that the config gives; else 0.2689, as published, from
    scratch, and 1 where a checkpoint without steps sets the block's weights.
    """
    default_blocks = 'identity'
    init_step: float

    def __init__(self, given_step: float | None):
        super().__init__()
        self.given_step = given_step
        self.forget_weights()

    def init_weights(self) -> None:
        """The layers' starts, then that of the step size."""
        super().init_weights()
        self.set_start()

    def forget_weights(self) -> None:
        """Start where the config says, or as published."""
        super().forget_weights()
        given = self.given_step
        self.init_step = PUBLISHED_STEP_SIZE if given is None else given

    def start_pretrained(self) -> None:
        """Start at 1, unless the config or a checkpoint sets the start."""
        if self.given_step is None and not self.loaded:
            self.init_step = 1
            self.set_start()

    def set_start(self) -> None:
        """Set the parameters of the start to ``init_step``.

        Draws no random numbers: a load may call it on some ranks only.
        """
        raise NotImplementedError

    def describe_start(self) -> str:
        """The step size at the start and why, for the log."""
        if self.loaded:
            return super().describe_start()
        if self.given_step is not None:
            why = 'as backbone.step says'
        elif self.init_step == 1:
            why = 'a checkpoint without steps has set their blocks'
        else:
            why = 'as published; no checkpoint has set their blocks'
        return f'at {self.init_step:.4g} ({why})'


@MODELS.register_module()
class ConstantStep(ChosenStart):
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
