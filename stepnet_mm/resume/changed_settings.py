"""Settings of optimizer and schedule that a resume takes from a checkpoint."""
import reprlib
from collections.abc import Iterator

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
    return list(dict.fromkeys(
        # Each once, since there may be a group per parameter. The whole repr
        # of a file's list, which may share its parts, can be endless.
        f'{key} goes on as {reprlib.repr(before)}, not as {reprlib.repr(now)}'
        for key, now, before in (*_optimizers(runner, checkpoint),
                                 *_schedulers(runner, checkpoint))))


def new_parts(runner, checkpoint: dict) -> list[str]:
    """``optimizer``, ``param_schedulers``, both or neither: those that the
    config has and the checkpoint, as a best one, has not.
    """
    wanted = dict(optimizer=True, param_schedulers=runner.param_schedulers)
    return [key for key in wanted if wanted[key] and key not in checkpoint]


def _optimizers(runner, checkpoint: dict) -> Iterator[tuple]:
    wrapper = runner.optim_wrapper
    saved = checkpoint.get('optimizer') or {}
    if 'param_groups' in saved:
        yield from _groups('optimizer', wrapper, saved)
    elif hasattr(wrapper, 'items'):  # several optimizers
        for name, part in wrapper.items():
            if 'param_groups' in saved.get(name, ()):
                yield from _groups(f'optimizer.{name}', part, saved[name])


def _groups(key: str, wrapper, saved: dict) -> Iterator[tuple]:
    for now, before in zip(wrapper.param_groups, saved['param_groups']):
        before, now = _settings(before), _settings(now)
        yield from ((f'{key}.{name}', now.get(name, 'unset'),
                     before.get(name, 'unset'))
                    for name in sorted({*now, *before})
                    if now.get(name) != before.get(name))


def _settings(group: dict) -> dict:
    """The settings of a parameter group before any schedule."""
    return {
        name: group.get(f'initial_{name}', value)
        for name, value in group.items()
        if name != 'params' and not name.startswith('initial_')
        and value is not None
    }


def _schedulers(runner, checkpoint: dict) -> Iterator[tuple]:
    if 'param_schedulers' not in checkpoint:
        return
    now = _by_name(runner.param_schedulers)
    saved = _by_name(checkpoint['param_schedulers'])
    for name, before in saved.items():
        key = f'param_scheduler{name}'
        states = [s.state_dict() for s in now.get(name, [])]
        if len(states) != len(before):
            yield (f'the number of {key}', len(states), len(before))
        for i, pair in enumerate(zip(states, before)):
            for part in sorted({*pair[0], *pair[1]} - PROGRESS):
                values = [state.get(part, 'unset') for state in pair]
                if _plain(values[0]) != _plain(values[1]):
                    yield (f'{key}[{i}].{part}', *values)


def _by_name(schedulers) -> dict[str, list]:
    if isinstance(schedulers, dict):
        return {f'.{name}': part for name, part in schedulers.items()}
    return {'': list(schedulers or [])}


def _plain(value):
    return list(value) if isinstance(value, tuple) else value
