"""The training state in a checkpoint, which mmengine's lacks.

It is the place in the data, whether a validation is due, the counts of early
stopping, and the random generators and buffers of every rank. ResumableLoop
takes it up again (``_restore_state``).
"""
import hashlib
import reprlib
from collections import defaultdict

import torch
from mmengine import dist
from mmengine.hooks import EarlyStoppingHook
from mmengine.optim import OptimWrapperDict

from ..utils.hook_helpers import unwrap
from ..utils.random_state import get_random_state

#: Positions in a schedule, also by a metric, and values derived from the
#: optimizer's.
PROGRESS = {'last_step', 'base_values', '_global_step', '_last_value',
            'verbose', 'best', 'num_bad_epochs', 'cooldown_counter'}


def training_state(runner, random: dict | None = None, **progress) -> dict:
    """Gather the state of all ranks; a collective call.

    With the current states of this rank's generators and the ``progress()``
    of a :class:`.ResumableLoop`, where no others are given. The same on all
    ranks; of numbers, strings and CPU tensors.
    """
    own = dict(
        random=random or get_random_state(), buffers=_own_buffers(runner))
    return dict(
        **{**runner.train_loop.progress(), **progress},
        early_stopping=[(hook.wait_count, float(hook.best_score))
                        for hook in _early_stopping(runner)],
        world_size=dist.get_world_size(),
        ranks=dist.all_gather_object(own))


def load_early_stopping(runner, counted: list) -> None:
    """Restore the counts of the hooks, in their order."""
    for hook, (count, best) in zip(_early_stopping(runner), counted):
        hook.wait_count, hook.best_score = count, best


def _early_stopping(runner) -> list[EarlyStoppingHook]:
    return [hook for hook in runner.hooks
            if isinstance(hook, EarlyStoppingHook)]


def load_buffers(runner, buffers: dict) -> None:
    """Restore the buffers in which a rank differed from the first."""
    own = _buffers(runner)
    for name in set(buffers) & set(own):
        own[name].copy_(buffers[name])


def accumulating(optim_wrapper) -> bool:
    """Whether gradients wait for an update; no checkpoint holds them."""
    if isinstance(optim_wrapper, OptimWrapperDict):
        return any(map(accumulating, optim_wrapper.values()))
    updates = getattr(optim_wrapper, 'should_update', None)
    return updates is not None and not updates()  # a user's may not know


def _buffers(runner) -> dict:
    """Buffers of the model and of averaged models, such as EMAHook's."""
    models = [unwrap(runner.model)]
    averages = [getattr(hook, 'ema_model', None) for hook in runner.hooks]
    models += [m for m in averages if isinstance(m, torch.nn.Module)]
    return {f'{i}.{name}': buffer for i, model in enumerate(models)
            for name, buffer in model.named_buffers()}


def _own_buffers(runner) -> dict:
    """Buffers that differ from the first rank's, which mmengine saves."""
    if dist.get_world_size() == 1:
        return {}
    buffers = {name: b.detach().cpu() for name, b in _buffers(runner).items()}
    digests = {name: _digest(b) for name, b in buffers.items()}
    first = [digests]
    dist.broadcast_object_list(first)
    return {name: b for name, b in buffers.items()
            if first[0].get(name) != digests[name]}


def _digest(tensor: torch.Tensor) -> str:
    content = tensor.contiguous().view(-1).view(torch.uint8)
    return hashlib.sha1(content.numpy().tobytes()).hexdigest()


def changed_settings(runner, checkpoint: dict) -> list[str]:
    """A text for each setting of a config that a resume does not change.

    Of optimizer and schedules, which mmengine loads with the checkpoint's
    settings (those of several optimizers are not compared), and the seed. To
    be called before they are loaded.
    """
    seed = (runner.cfg.get('randomness') or {}).get('seed')
    saved = checkpoint.get('training_state', {}).get('seed', seed)
    changed = [] if seed in (None, saved) else [
        f'randomness.seed goes on as {saved}, not as {seed}']
    if isinstance(runner.optim_wrapper, OptimWrapperDict):
        return changed
    now = dict(
        optimizer=runner.optim_wrapper.state_dict(),
        param_schedulers=[s.state_dict()
                          for s in runner.param_schedulers or []])
    both = now.keys() & checkpoint.keys()
    old, new = (_settings({key: state[key] for key in both})
                for state in (checkpoint, now))
    return changed + [
        f'{key} goes on as {reprlib.repr(old.get(key))}, not as '
        f'{reprlib.repr(new.get(key))}'
        for key in sorted({*old, *new}) if old.get(key) != new.get(key)]


def _settings(state: dict) -> dict[str, list]:
    """Key -> its values, one of each group of parameters or schedule."""
    found = defaultdict(list)
    for group in state.get('optimizer', {}).get('param_groups', []):
        for name, value in group.items():
            if name != 'params' and not name.startswith('initial_'):
                # The learning rate and others before any schedule.
                found[f'optimizer.{name}'].append(
                    group.get(f'initial_{name}', value))
    for schedule in state.get('param_schedulers', []):
        for name, value in schedule.items():
            if name not in PROGRESS:
                found[f'param_scheduler.{name}'].append(value)
    return found
