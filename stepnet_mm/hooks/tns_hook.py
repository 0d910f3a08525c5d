"""Logs neural stiffness while a model trains."""
import torch
from mmengine import dist
from mmengine.registry import HOOKS

from ..recording import TrajectoryRecorder
from ..recording.probe import Probe
from ..stiffness import summarize_stiffness
from ..utils.hook_helpers import ReplacedMethod, unwrap
from .measuring_hook import MeasuringHook


@HOOKS.register_module()
class TNSHook(MeasuringHook):
    """Log TNS and NSI every ``interval``, and change no bit of the training.

    Without ``probe`` the training forward that runs anyway is read: the
    current batch, augmented, in training mode. With it a fixed set of samples
    is run in eval mode, at the cost of that forward pass.

    The scalars of :func:`summarize_stiffness`, TNS (Eq. 5) and NSI (Eq. 4)
    among them, go to the log and to every visualizer back end
    (``stiffness/...``), the mean NSI of each block to the latter alone.
    Samples of all ranks count.

    Args:
        interval (int): iterations (epochs) between measurements; the first
            comes at iteration (epoch) ``interval``. Defaults to 50.
        by_epoch (bool): whether ``interval`` counts epochs; the last
            iteration of one is measured. Defaults to False.
        probe (dict, optional): ``num_samples`` (512), spread over the
            dataset, and ``dataloader``, left out the config's
            ``val_dataloader``. ``probe=dict()`` takes these defaults.
        blocks (str, optional): a regular expression for the names of the
            blocks, where the search should not decide.
        definition (str, optional): of NSI, ``'residual'``, ``'output'`` or
            ``'update'``; left out, the first where every block allows it,
            else the second.
        name (str): the first part of scalar names, different for each
            TNSHook.

    Raises:
        ValueError: on a wrong argument, or a model that cannot be measured.

    Examples:
        >>> custom_hooks = [dict(type='TNSHook', interval=100)]
    """

    def __init__(self, interval: int = 50, by_epoch: bool = False,
                 probe: dict | None = None, blocks: str | None = None,
                 definition: str | None = None, name: str = 'stiffness'):
        super().__init__(interval, by_epoch, probe, name)
        self.choice = dict(blocks=blocks, definition=definition)
        self._probe: Probe | None = None
        self._recorder: TrajectoryRecorder | None = None
        self._calls: ReplacedMethod | None = None
        self._unchecked = False

    def before_train(self, runner) -> None:
        """Check that the model can be measured; take the probe's samples."""
        self._end_recording()
        super().before_train(runner)
        if runner.cfg.get('compile') and self.probe_cfg is None:
            raise ValueError(
                'compile: expected False with a TNSHook that reads the '
                'training forward, got True, which does not see hooks that '
                'come later; set compile=False, or TNSHook.probe=dict() to '
                'measure a fixed set of samples')
        self._recorder = None
        recorder = self._empty_recorder(runner)
        self._unchecked = self.probe_cfg is None
        if self.probe_cfg is not None:
            self._probe = Probe(self._probe_loader(runner),
                                self.probe_cfg.get('num_samples', 512))
            self._probe.check(unwrap(runner.model), recorder)
        self._warn(runner, recorder.stage)

    def _warn(self, runner, stage) -> None:
        if len(stage.unique()) == len(stage):
            runner.logger.warning(
                'TNSHook: each stage has one measured block (its first one is '
                'left out), so TNS is 0 by definition. NSI is logged all the '
                'same. TNS needs three blocks in a stage: set a greater '
                'backbone.depth (34 for ImageNet networks, 29 for '
                'StepResNetCIFAR).')

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Have the training forward recorded, where it is measured.

        The first iteration of a run too: a model that cannot be measured is
        an error then, not after an interval.
        """
        self._end_recording()
        if self._probe is None and (
                self._unchecked or self._is_due(runner, batch_idx)):
            self._calls = ReplacedMethod(
                runner.model, 'train_step', self._empty_recorder(runner).call)

    def after_train_iter(self, runner, batch_idx, *args, **kwargs) -> None:
        """Measure, where it is due; give the model its own method back."""
        super().after_train_iter(runner, batch_idx, *args, **kwargs)
        recorder, self._unchecked = self._end_recording(), False
        if recorder is not None:
            recorder.check()

    def _measure(self, runner) -> None:
        recorder = self._end_recording()
        if self._probe is not None:
            recorder = self._empty_recorder(runner)
            self._probe.measure(unwrap(runner.model), recorder)
        if recorder is not None:
            self._log(runner, recorder)

    def _empty_recorder(self, runner) -> TrajectoryRecorder:
        # One for a training, as it takes long to find a network's blocks.
        if self._recorder is None:
            self._recorder = self._new_recorder(runner.model)
        self._recorder.clear()
        return self._recorder

    def _new_recorder(self, model) -> TrajectoryRecorder:
        return TrajectoryRecorder(model, **self.choice)

    def _rows(self, recorder) -> torch.Tensor:
        """What is measured, (N, L)."""
        return recorder.nsi

    def _summary(self, rows, recorder) -> dict:
        """The scalars that are logged."""
        return summarize_stiffness(rows, recorder.stage, recorder.blocks)

    def _log(self, runner, recorder) -> None:
        rows = torch.cat(dist.all_gather_object(self._rows(recorder)))
        if not len(rows):
            runner.logger.warning(
                f'{self._owner}: the backbone was not called in this '
                'iteration, so nothing was measured')
            return
        scalars = self._summary(rows, recorder)
        iteration = runner.iter + 1
        numbers = '  '.join(f'{k}: {v:.4g}' for k, v in scalars.items()
                            if '/' not in k)
        runner.logger.info(
            f'Iter(train) [{iteration}/{runner.max_iters}]  {numbers}')
        self._add_scalars(runner, scalars, iteration)

    def _end_recording(self) -> TrajectoryRecorder | None:
        """Restore train_step; return the recorder, if there is one."""
        calls, self._calls = self._calls, None
        if calls is None:
            return None
        calls.undo()
        return self._recorder
