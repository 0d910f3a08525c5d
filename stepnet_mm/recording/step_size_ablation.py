"""Statistics of step sizes, and the ablation with fixed step sizes."""
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..steps import StepSize
from ..utils.compilation import refuse_compiled
from ..utils.hook_helpers import unwrap

#: The metrics of an ablation, and how Δt is described, as files name them.
ABLATIONS = ('trained', 'per_channel', 'per_block')
STEP_MOMENTS = ('mean', 'over_samples', 'over_positions', 'over_channels')


@dataclass
class StepSizeMoments:
    """Δt of one step-size module, over samples and positions.

    Attributes:
        samples (int): how many; a Δt that looks at no input counts once per
            forward.
        mean (Tensor): (C,), over samples and positions; float64 on the device
            of Δt, as the others. C is 1 where channels share their Δt.
        between (Tensor): (C,), the variance over samples of each sample's
            mean over positions.
        within (Tensor): (C,), the mean over samples of the variance over
            positions; 0 where Δt is no map.
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


@contextmanager
def record_step_sizes(
        model: nn.Module) -> Iterator[dict[str, StepSizeMoments]]:
    """Read Δt of every step-size module while a model runs.

    Nothing that the model computes changes.

    Example:
        >>> with record_step_sizes(model) as moments:
        ...     model(images)
        >>> {name: m.over_samples for name, m in moments.items()}

    Args:
        model (nn.Module): of DDP and averaged (EMA) models the one inside.

    Yields:
        dict[str, StepSizeMoments]: by the name of each module that has run.

    Raises:
        ValueError: if the model has no step-size module, or is compiled.
    """
    moments: dict[str, StepSizeMoments] = {}

    def add(name: str, step_size: Tensor) -> None:
        if len(step_size):
            new = StepSizeMoments.of(step_size)
            known = moments.get(name)
            moments[name] = known.merged(new) if known else new

    with _hooks_on(find_step_sizes(model), add):
        yield moments


@contextmanager
def fixed_step_sizes(model: nn.Module,
                     values: Mapping[str, Tensor | float]) -> Iterator[None]:
    """Hold the Δt of step-size modules at fixed values.

    Args:
        model (nn.Module): as for :func:`record_step_sizes`.
        values (mapping): a module's name -> Δt, a number or (C,). Modules
            that are not named compute their own.

    Raises:
        KeyError: if a name is of no step-size module.
    """
    known = find_step_sizes(model)

    def replace(name: str, step_size: Tensor) -> Tensor:
        value = torch.as_tensor(values[name]).to(step_size).flatten()
        return value.expand(step_size.size(1)).contiguous().view(1, -1, 1, 1)

    with _hooks_on({name: known[name] for name in values}, replace):
        yield


def step_sizes_of(model: nn.Module) -> dict[str, StepSize]:
    """The step-size modules of a model, if it has any, by name."""
    return {name: module for name, module in model.named_modules()
            if isinstance(module, StepSize)}


def find_step_sizes(model: nn.Module) -> dict[str, StepSize]:
    """The step-size modules of a model, by name.

    Raises:
        ValueError: if there is none, or the model is compiled.
    """
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
def _hooks_on(steps: dict[str, StepSize],
              function: Callable) -> Iterator[None]:
    """Call ``function(name, Δt)``; a result other than None replaces Δt."""

    def hook(name, module, args, step_size):
        return function(name, step_size)

    with ExitStack() as hooks:
        for name, step in steps.items():
            hooks.callback(step.delta.register_forward_hook(
                partial(hook, name)).remove)
        yield


@dataclass
class StepAblation:
    """Metrics of a network with its step sizes, and with fixed ones.

    Attributes:
        trained (dict): metrics of the network as it is.
        per_channel (dict): metrics with each channel's Δt at its mean over
            samples and positions: nothing adapts to the input.
        per_block (dict): metrics with one Δt for each block.
        moments (dict[str, StepSizeMoments]): Δt as it was, by module.
    """
    trained: dict[str, Any]
    per_channel: dict[str, Any]
    per_block: dict[str, Any]
    moments: dict[str, StepSizeMoments]


def ablate_step_sizes(model: nn.Module,
                      evaluate: Callable[[], dict]) -> StepAblation:
    """Evaluate a network three times: as it is, and with fixed Δt.

    The fixed ones are the means over the samples of the first evaluation.

    Args:
        model (nn.Module): as for :func:`record_step_sizes`.
        evaluate (callable): runs this model over the same samples each time,
            and returns its metrics.

    Raises:
        ValueError: if ``evaluate`` does not run the model's step sizes.
    """
    with record_step_sizes(model) as moments:
        trained = evaluate()
    if not moments:
        raise ValueError('evaluate: expected it to run the step sizes of the '
                         'model, got no call; evaluate this very model')
    with fixed_step_sizes(model, {n: m.mean for n, m in moments.items()}):
        per_channel = evaluate()
    with fixed_step_sizes(
            model, {n: m.mean.mean() for n, m in moments.items()}):
        per_block = evaluate()
    return StepAblation(trained, per_channel, per_block, moments)
