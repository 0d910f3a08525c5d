"""Whether a block's weights come from a checkpoint without steps.

Then its step starts at 1, if it can (steps/initial_step.py).
"""
from torch import nn

from ..steps.base import StepSize


class PretrainedStart(nn.Module):
    """Mixin for a module with a ``step``, None where it has none.

    A checkpoint with the block's weights and no step trained f for Δt = 1, so
    the step starts there if neither its config nor a checkpoint says
    otherwise. Every way of loading comes through the block: init_cfg of the
    backbone or the detector, load_from, torch's own.
    """
    #: A weight of f, which shows that a checkpoint has the block.
    residual_weight = 'conv1.weight'
    step: StepSize | None

    def _load_from_state_dict(self, state_dict: dict, prefix: str,
                              *args) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        if isinstance(self.step, StepSize) and (
                self._comes_without_step(state_dict, prefix)):
            self.step.start_pretrained()

    def _comes_without_step(self, state_dict: dict, prefix: str) -> bool:
        own = dict(self.named_parameters()).get(self.residual_weight)
        given = state_dict.get(prefix + self.residual_weight)
        fits = own is not None and getattr(given, 'shape', None) == own.shape
        return fits and not any(
            key.startswith(f'{prefix}step.') for key in state_dict)
