"""Statistics of step sizes, and a network's metrics with fixed ones."""
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from stepnet_mm.steps import StepSize
from stepnet_mm.steps.base import step_sizes_of
from stepnet_mm.utils.compilation import refuse_compiled
from stepnet_mm.utils.hook_helpers import unwrap


@dataclass
class StepSizeMoments:
    """Δt of one step-size module, over samples and positions.

    A Δt that looks at no input counts as one sample per forward. Of each
    channel, (C,) in float64, C being 1 where channels share their Δt: the mean
    over samples and positions; ``between``, the variance over samples of their
    means over positions; ``within``, the mean over samples of the variance
    over positions.
    """
    samples: int
    mean: Tensor
    between: Tensor
    within: Tensor

    @classmethod
    def of(cls, step_size: Tensor) -> 'StepSizeMoments':
        """Of the Δt of one forward, (N, C, H, W)."""
        values = step_size.detach().double().flatten(2)
        means = values.mean(2)
        return cls(len(values), means.mean(0), means.var(0, unbiased=False),
                   values.var(2, unbiased=False).mean(0))

    def merged(self, other: 'StepSizeMoments') -> 'StepSizeMoments':
        """Of both sets of samples (Chan, Golub and LeVeque 1983)."""
        samples = self.samples + other.samples
        share = other.samples / samples
        apart = other.mean - self.mean
        return StepSizeMoments(
            samples,
            self.mean + share * apart,
            torch.lerp(self.between, other.between, share)
            + share * (1 - share) * apart.square(),
            torch.lerp(self.within, other.within, share))

    @property
    def over_samples(self) -> float:
        """Standard deviation over samples, root mean square of channels."""
        return self.between.mean().sqrt().item()

    @property
    def over_positions(self) -> float:
        """Standard deviation over positions, as :attr:`over_samples`."""
        return self.within.mean().sqrt().item()

    @property
    def over_channels(self) -> float:
        """Standard deviation over channels of their means."""
        return self.mean.std(unbiased=False).item()


def ablate_step_sizes(model: nn.Module, evaluate: Callable) -> tuple:
    """Evaluate a network three times: as it is, and with fixed Δt.

    The fixed ones, by channel and by block, are the means over samples and
    positions of the first evaluation: nothing adapts to the input.

    Returns:
        tuple[dict, dict]: the metrics ``trained``, ``per_channel`` and
        ``per_block``, and :class:`StepSizeMoments` by module.

    Raises:
        ValueError: if the model is compiled, has no step-size module, or
            ``evaluate`` does not run it.
    """
    steps, moments = find_step_sizes(model), {}
    with _hooks_on(steps, partial(_add, moments)):
        trained = evaluate()
    if not moments:
        raise ValueError('evaluate: expected it to run the step sizes of the '
                         'model, got no call; evaluate this very model')

    def held(of_mean: Callable) -> dict:
        def replace(name: str, step_size: Tensor) -> Tensor:
            value = of_mean(moments[name].mean).to(step_size).flatten()
            return value.expand(step_size.size(1)).contiguous().view(
                1, -1, 1, 1)

        with _hooks_on({name: steps[name] for name in moments}, replace):
            return evaluate()

    return dict(trained=trained, per_channel=held(lambda mean: mean),
                per_block=held(torch.mean)), moments


def _add(moments: dict, name: str, step_size: Tensor) -> None:
    if len(step_size):
        new = StepSizeMoments.of(step_size)
        known = moments.get(name)
        moments[name] = known.merged(new) if known else new


def find_step_sizes(model: nn.Module) -> dict[str, StepSize]:
    """The step-size modules of a model, by name."""
    model = unwrap(model)
    refuse_compiled(model)
    found = step_sizes_of(model)
    if not found:
        raise ValueError(
            f'model: expected step-size modules in {type(model).__name__}, '
            'got none; build it with backbone.step, or with an attention '
            'module of stepnet_mm.steps')
    return found


@contextmanager
def _hooks_on(steps: dict, function: Callable):
    """Call ``function(name, Δt)``; a result other than None replaces Δt."""

    def hook(name, module, args, step_size):
        return function(name, step_size)

    with ExitStack() as hooks:
        for name, step in steps.items():
            hooks.callback(step.delta.register_forward_hook(
                partial(hook, name)).remove)
        yield
