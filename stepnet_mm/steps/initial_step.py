"""init_step: steps that start at one number for every input."""
import math

from .base import StepSize

#: σ(-1), the step size at the start with the published w = 0 and b = -1.
PUBLISHED_STEP_SIZE = 1 / (1 + math.e)


class InitialStep(StepSize):
    """Base of the steps that start at one number, the same for every input.

    It is the one that the config gives; else 0.2689, as published, from
    scratch, and 1 where a checkpoint without steps sets the block's weights.
    """
    default_blocks = 'identity'
    init_step: float

    def __init__(self, given_step: float | None):
        super().__init__()
        self.given_step = given_step
        self.forget_loaded()

    def init_weights(self) -> None:
        """The layers' starts, then that of the step size."""
        super().init_weights()
        self.set_start()

    def forget_loaded(self) -> None:
        """Start where the config says, or as published."""
        super().forget_loaded()
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
