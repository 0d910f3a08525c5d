"""The base class of hooks that measure while a model trains."""
import re
from pathlib import Path
from typing import Any

from mmengine import fileio
from mmengine.dist import master_only
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop
from mmengine.visualization import LocalVisBackend

from ..utils.hook_helpers import check_count
from ..utils.random_state import seeded


class MeasuringHook(Hook):
    """Measures every ``interval`` iterations or epochs.

    The arguments are those of the same name of :class:`TNSHook`.

    Raises:
        ValueError: on a wrong argument, and before training if two hooks
            have one name, or ``by_epoch`` is set in a training by iterations.
    """

    def __init__(self, interval: int, by_epoch: bool, probe: dict | None,
                 name: str):
        check_count(f'{self._owner}.interval', interval, 1)
        if not re.fullmatch(r'[\w.-]+', str(name)):
            raise ValueError(f'{self._owner}.name: expected letters, digits '
                             f'and _.-, got {name!r}')
        if probe is not None and not (
                isinstance(probe, dict)
                and {'num_samples', 'dataloader'} >= {*probe}):
            raise ValueError(f'{self._owner}.probe: expected a dict with some '
                             f'of num_samples and dataloader, got {probe!r}')
        self.interval = interval
        self.by_epoch = by_epoch
        self.probe_cfg: Any = probe
        self.name = name

    def before_train(self, runner) -> None:
        """Fail before training, not at the first measurement."""
        names = [
            hook.name for hook in runner.hooks if type(hook) is type(self)]
        if len(names) != len({*names}):
            raise ValueError(
                f'{self._owner}.name: expected a different one for each '
                f'{self._owner} in custom_hooks, got {names}')
        if self.by_epoch and not isinstance(runner.train_loop,
                                            EpochBasedTrainLoop):
            raise ValueError(
                f'{self._owner}.by_epoch: expected False in a training by '
                'iterations, which has no epochs, got True; set it to False '
                'and give interval in iterations')

    def after_train_iter(self, runner, batch_idx, *args, **kwargs) -> None:
        """Measure, where it is due."""
        if self._is_due(runner, batch_idx):
            self._measure(runner)

    def _measure(self, runner) -> None:
        """Measure after this iteration."""
        raise NotImplementedError

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _is_due(self, runner, batch_idx) -> bool:
        if not self.by_epoch:
            return self.every_n_train_iters(runner, self.interval)
        return self.every_n_epochs(runner, self.interval) and (
            self.end_of_epoch(runner.train_dataloader, batch_idx))

    def _probe_loader(self, runner):
        """The loader whose samples are measured."""
        dataloader = self.probe_cfg.get('dataloader')
        if dataloader is not None:
            with seeded(0):  # a sampler without a seed draws one
                return runner.build_dataloader(dataloader)
        if runner.val_loop is None:
            raise ValueError(
                f'{self._owner}.probe: expected a val_dataloader to take '
                'samples from, got none in the config; set '
                'probe=dict(dataloader=...)')
        return runner.val_dataloader

    @master_only
    def _add_scalars(self, runner, scalars: dict, iteration: int) -> None:
        """Give every visualizer back end ``{name}/{key}``.

        The local one's go to ``{name}.json``, as the libraries' tools take
        every line of scalars.json for one of training or validation.
        """
        named = {f'{self.name}/{key}': v for key, v in scalars.items()}
        for backend in runner.visualizer._vis_backends.values():
            if not isinstance(backend, LocalVisBackend):
                backend.add_scalars(named, iteration)
                continue
            path = Path(runner.log_dir, 'vis_data', f'{self.name}.json')
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, 'a') as file:
                line = dict(named, step=iteration)
                file.write(f'{fileio.dump(line, file_format="json")}\n')
