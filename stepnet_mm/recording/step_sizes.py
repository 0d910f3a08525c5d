"""How step sizes vary, and what a network does with step sizes that do not."""
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from ..steps import StepSize
from ..utils.model_wrappers import unwrap
from .compiled import refuse_compiled


@dataclass
class StepSizeMoments:
    """Δt of one step-size module, over the samples that were seen.

    Each sample and channel counts by its mean over space.

    Attributes:
        mean (Tensor): (C,), float64; C is 1 where channels share their Δt.
        variance (Tensor): (C,), over samples.
        samples (int): how many; a Δt that looks at no input counts once per
            forward.
    """
    mean: Tensor
    variance: Tensor
    samples: int = 0

    @classmethod
    def of(cls, step_size: Tensor) -> 'StepSizeMoments':
        """Of one Δt, (N, C, H, W)."""
        rows = step_size.detach().double().mean((2, 3)).cpu()
        return cls(rows.mean(0), rows.var(0, unbiased=False), len(rows))

    def merged(self, other: 'StepSizeMoments') -> 'StepSizeMoments':
        """Of both sets of samples (Chan, Golub and LeVeque 1983)."""
        samples = self.samples + other.samples
        share = other.samples / samples
        apart = other.mean - self.mean
        return StepSizeMoments(
            self.mean + share * apart,
            (1 - share) * self.variance + share * other.variance
            + share * (1 - share) * apart.square(), samples)

    @property
    def over_samples(self) -> float:
        """Standard deviation over samples, root mean square of channels."""
        return self.variance.mean().sqrt().item()

    @property
    def over_channels(self) -> float:
        """Standard deviation over channels of their means."""
        return self.mean.std(unbiased=False).item()


class StepSizeRecorder:
    """Reads Δt of every step-size module while a model runs.

    Nothing that the model computes changes, and the hooks are gone when the
    context ends.

    Example:
        >>> with StepSizeRecorder(model) as recorder:
        ...     model(images)
        >>> {name: m.over_samples for name, m in recorder.moments.items()}

    Args:
        model (nn.Module): of DDP and averaged (EMA) models the one inside.

    Attributes:
        moments (dict[str, StepSizeMoments]): by the module's name, of those
            that ran.

    Raises:
        ValueError: if the model has no step-size module, or is compiled.
    """

    def __init__(self, model: nn.Module):
        self._steps = find_step_sizes(model)
        self._hooks = ExitStack()
        self.moments: dict[str, StepSizeMoments] = {}

    def __enter__(self):
        for name, step in self._steps.items():
            self._hooks.callback(step.delta.register_forward_hook(
                self._hook(name)).remove)
        return self

    def __exit__(self, *error):
        self._hooks.close()

    def _hook(self, name: str) -> Callable:

        def add(module, args, step_size: Tensor) -> None:
            new = StepSizeMoments.of(step_size)
            known = self.moments.get(name)
            self.moments[name] = known.merged(new) if known else new

        return add


def find_step_sizes(model: nn.Module) -> dict[str, StepSize]:
    """The step-size modules of a model, by name.

    Raises:
        ValueError: if there is none, or the model is compiled.
    """
    model = unwrap(model)
    refuse_compiled(model)
    found = {name: module for name, module in model.named_modules()
             if isinstance(module, StepSize)}
    if not found:
        raise ValueError(
            f'model: expected step-size modules in {type(model).__name__}, '
            'got none; take a config that has model.backbone.step')
    return found


@contextmanager
def fixed_step_sizes(model: nn.Module,
                     values: Mapping[str, Tensor]) -> Iterator[None]:
    """Have step-size modules give these Δt, whatever their input is.

    Args:
        model (nn.Module): as for :class:`StepSizeRecorder`.
        values (mapping): a module's name -> Δt, a scalar or (C,). Modules
            that are not named compute their own.

    Raises:
        ValueError: if a name is of no step-size module.
    """
    steps = find_step_sizes(model)
    unknown = sorted(values.keys() - steps.keys())
    if unknown:
        raise ValueError(f'values: expected names of {[*steps]}, got '
                         f'{unknown}; correct them')
    with ExitStack() as hooks:
        for name, value in values.items():
            hooks.callback(steps[name].delta.register_forward_hook(
                _replacement(value)).remove)
        yield


def _replacement(value: Tensor) -> Callable:
    value = value.view(1, -1, 1, 1)
    return lambda module, args, step_size: value.to(step_size).expand_as(
        step_size).contiguous()


@dataclass
class StepAblation:
    """What a network does with its step sizes, and with fixed ones.

    Attributes:
        trained (dict): metrics of the network as it is.
        per_channel (dict): metrics with each Δt at its mean over samples and
            space, by channel: nothing adapts to the input.
        per_block (dict): metrics with one Δt for all channels of a block.
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
        model (nn.Module): as for :class:`StepSizeRecorder`.
        evaluate (callable): runs the model over the same samples each time,
            and returns its metrics.
    """
    with StepSizeRecorder(model) as recorder:
        trained = evaluate()
    moments = recorder.moments
    with fixed_step_sizes(model, {n: m.mean for n, m in moments.items()}):
        per_channel = evaluate()
    with fixed_step_sizes(
            model, {n: m.mean.mean() for n, m in moments.items()}):
        per_block = evaluate()
    return StepAblation(trained, per_channel, per_block, moments)
