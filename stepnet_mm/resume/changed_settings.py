"""Settings of optimizer and schedule that a resume takes from a checkpoint."""
import reprlib

#: Positions in a schedule, and values derived from the optimizer's.
PROGRESS = {'last_step', 'base_values', '_global_step', '_last_value',
            'verbose'}


def changed_settings(runner, checkpoint: dict) -> list[str]:
    """Settings in which config and checkpoint differ.

    mmengine loads optimizers and schedulers with their settings.

    Args:
        runner (Runner): has built both from the config, and not yet loaded.
        checkpoint (dict): the checkpoint.

    Returns:
        list[str]: a text for each difference.
    """
    saved = {**_optimizers(checkpoint.get('optimizer', {})),
             **_schedulers(checkpoint.get('param_schedulers', {}))}
    now = {**_optimizers(runner.optim_wrapper.state_dict()),
           **_schedulers(_states(runner.param_schedulers))}
    # Each once, since there may be a group per parameter. The whole repr of
    # a file's list, which may share its parts, can be endless.
    return list(dict.fromkeys(
        f'{key}.{name} goes on as {reprlib.repr(old.get(name, "unset"))}, '
        f'not as {reprlib.repr(new.get(name, "unset"))}'
        for key in saved
        for old, new in zip(saved[key], now.get(key, []))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)))


def _optimizers(state: dict) -> dict[str, list[dict]]:
    """The settings of every group of parameters before any schedule."""
    parts = {'optimizer': state}
    if 'param_groups' not in state:  # several optimizers
        parts = {f'optimizer.{name}': part for name, part in state.items()}
    return {key: [_settings(group) for group in part['param_groups']]
            for key, part in parts.items() if 'param_groups' in part}


def _settings(group: dict) -> dict:
    return {name: group.get(f'initial_{name}', value)
            for name, value in group.items()
            if name != 'params' and not name.startswith('initial_')}


def _schedulers(states) -> dict[str, list[dict]]:
    """The settings of every schedule, and their number."""
    parts = states if isinstance(states, dict) else {'': states}
    settings: dict[str, list[dict]] = {}
    for name, part in parts.items():
        key = f'param_scheduler.{name}' if name else 'param_scheduler'
        settings[key] = [dict(number=len(part))]
        for i, state in enumerate(part):
            settings[f'{key}[{i}]'] = [{
                name: list(value) if isinstance(value, tuple) else value
                for name, value in state.items() if name not in PROGRESS}]
    return settings


def _states(schedulers):
    if isinstance(schedulers, dict):
        return {name: _states(part) for name, part in schedulers.items()}
    return [scheduler.state_dict() for scheduler in schedulers or []]
