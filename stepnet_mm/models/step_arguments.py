"""Weights of steps with other arguments, and the arguments that fit."""
from ..steps.base import StepSize


def check_step_arguments(cfgs: list, stages: list[dict[str, StepSize]],
                         weights: dict) -> None:
    """Check that weights are of steps with the same arguments.

    Args:
        cfgs (list): the step's config for each stage.
        stages (list[dict[str, StepSize]]): the steps of each stage, by name.
        weights (dict): to be loaded into the backbone.

    Raises:
        ValueError: if they are of others; names the ``step`` that fits them.
    """
    shown = [_arguments(steps, weights) for steps in stages]
    for steps, (own, given) in zip(stages, shown):
        if {**own, **given} != own:
            fitting = [_with(cfg, given)
                       for cfg, (_, given) in zip(cfgs, shown)]
            raise ValueError(
                f'backbone.step: expected {_text(own)}, got weights of '
                f'{_text(given)} ({next(iter(steps))}); set '
                f'step={_as_config(fitting)}, or load other weights')


def part_of(state_dict: dict, prefix: str) -> dict:
    """The entries of a state dict with a prefix, without the prefix."""
    return {key[len(prefix):]: value for key, value in state_dict.items()
            if key.startswith(prefix)}


def _arguments(steps: dict[str, StepSize],
               weights: dict) -> tuple[dict, dict]:
    """The arguments of a stage's steps, and of the weights for them."""
    own: dict = {}
    given: dict = {}
    for name, step in steps.items():
        own.update(step.arguments_of(step.state_dict()))
        given.update(step.arguments_of(part_of(weights, f'{name}.')))
    return own, given


def _with(cfg: dict | str | None, arguments: dict) -> dict | str | None:
    if not arguments:
        return cfg
    return {**(cfg if isinstance(cfg, dict) else dict(type=cfg)), **arguments}


def _as_config(cfgs: list) -> str:
    """One config where all stages have the same, else a list."""
    texts = [f'dict({_text(cfg)})' if isinstance(cfg, dict) else repr(cfg)
             for cfg in cfgs]
    return texts[0] if len({*texts}) == 1 else f'[{", ".join(texts)}]'


def _text(arguments: dict) -> str:
    return ', '.join(f'{key}={value!r}' for key, value in arguments.items())
