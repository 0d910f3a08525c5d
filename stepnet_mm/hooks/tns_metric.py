"""Neural stiffness beside accuracy or AP, without a say in save_best."""
import functools
import math

import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook, Hook
from mmengine.registry import HOOKS, METRICS

from ..recording import TrajectoryRecorder
from ..stiffness import summarize_stiffness
from ..utils.hook_helpers import ReplacedMethod


@METRICS.register_module()
class TNSMetric(BaseMetric):
    """TNS and NSI of the evaluated samples, from the forward that runs anyway.

    Goes into ``val_evaluator`` or ``test_evaluator`` beside other metrics,
    and needs ``dict(type='TNSMetricHook')`` in ``custom_hooks``, which brings
    it the model; this package's tools add it. Samples that a distributed
    sampler repeats count once.

    Args:
        blocks (str, optional): a regular expression for the names of the
            blocks, where the search should not decide.
        definition (str, optional): of NSI, as in ``TNSHook``.
        by_block (bool): whether the mean NSI of each block is given too, as
            ``nsi/{block}``, and where it has a known gate the mean Δt, as
            ``step/{block}``.
        collect_device (str): as in every metric.
        prefix (str, optional): as in every metric; ``'stiffness_eval'``.

    Raises:
        ValueError: when it is used without its hook; if the model does not
            run each sample once.

    Examples:
        >>> val_evaluator = [dict(type='mmpretrain.Accuracy'),
        ...                  dict(type='TNSMetric', by_block=True)]
        >>> custom_hooks = [dict(type='TNSMetricHook')]
    """
    # Not TNSHook's own: its curve is over iterations, this one over epochs.
    default_prefix = 'stiffness_eval'

    def __init__(self, blocks: str | None = None,
                 definition: str | None = None, by_block: bool = False,
                 collect_device: str = 'cpu', prefix: str | None = None):
        super().__init__(collect_device=collect_device, prefix=prefix)
        self.choice = dict(blocks=blocks, definition=definition)
        self.by_block = by_block
        self._calls: ReplacedMethod | None = None
        self._recorder: TrajectoryRecorder | None = None

    def attach(self, model, method: str) -> None:
        """Watch the calls of a model's method until :meth:`detach`."""
        self.detach()  # after an evaluation that failed
        self._recorder = TrajectoryRecorder(model, **self.choice)
        self._calls = ReplacedMethod(model, method, self._recorder.call)

    def detach(self) -> None:
        """Stop watching."""
        if self._calls is not None:
            self._calls.undo()
        self._calls = self._recorder = None

    @property
    def recorder(self) -> TrajectoryRecorder:
        """Has the samples since the last batch.

        Raises:
            ValueError: if no model is attached.
        """
        if self._recorder is None:
            raise ValueError(
                'TNSMetric: expected a TNSMetricHook, which shows it the '
                "model, got none; add dict(type='TNSMetricHook') to "
                'custom_hooks')
        return self._recorder

    def process(self, data_batch, data_samples) -> None:
        """Take NSI and Δt of the batch that the model has just run."""
        nsi, step = self.recorder.nsi, self.recorder.step
        self.recorder.clear()
        # A user's val_step may return something else than samples.
        known = all(isinstance(sample, dict) for sample in data_samples)
        if known and len(nsi) != len(data_samples):
            raise ValueError(
                f'TNSMetric: expected one forward pass for each of the '
                f'{len(data_samples)} samples, got {len(nsi)}; test-time '
                'augmentation, a compiled model and several backbones cannot '
                'be measured here: take TNSMetric out of the evaluator')
        self.results.extend(torch.stack([nsi, step], 1).double().numpy())

    def compute_metrics(self, results: list) -> dict:
        """Rows of all samples -> the scalars of `summarize_stiffness`."""
        rows = torch.stack([torch.from_numpy(row) for row in results])
        nsi, step = rows.unbind(1)
        blocks = self.recorder.blocks if self.by_block else ()
        scalars = summarize_stiffness(nsi, self.recorder.stage, blocks)
        finite = nsi.isfinite().all(1)  # as the other numbers
        means = zip(blocks, step[finite].nanmean(0).tolist())
        return {**scalars,
                **{f'step/{name}': mean for name, mean in means
                   if math.isfinite(mean)}}


@HOOKS.register_module()
class TNSMetricHook(Hook):
    """Shows the model to every :class:`TNSMetric` that evaluates it.

    Beside other metrics its scalars choose no best checkpoint, unless
    ``save_best`` names one of them.

    Examples:
        >>> custom_hooks = [dict(type='TNSMetricHook')]
    """

    def __init__(self) -> None:
        self._replaced: list[ReplacedMethod] = []

    def before_train(self, runner) -> None:
        """Fail before training, not at the first validation."""
        self.after_train(runner)  # of an earlier one that failed
        if runner.val_loop is None:
            return
        for metric in _metrics(runner.val_evaluator):
            TrajectoryRecorder(runner.model, **metric.choice)
        self._replaced = [
            ReplacedMethod(hook, 'after_val_epoch',
                           functools.partial(_save_best, hook))
            for hook in runner.hooks
            if isinstance(hook, CheckpointHook) and hook.save_best]

    def after_train(self, runner) -> None:
        """Give the checkpoint hooks their method back."""
        while self._replaced:
            self._replaced.pop().undo()

    def before_val(self, runner) -> None:
        """Attach the metrics of the validation."""
        for metric in _metrics(runner.val_evaluator):
            metric.attach(runner.model, 'val_step')

    def before_test(self, runner) -> None:
        """Attach the metrics of the test."""
        for metric in _metrics(runner.test_evaluator):
            metric.attach(runner.model, 'test_step')

    def after_val(self, runner) -> None:
        """Detach the metrics of the validation."""
        for metric in _metrics(runner.val_evaluator):
            metric.detach()

    def after_test(self, runner) -> None:
        """Detach the metrics of the test."""
        for metric in _metrics(runner.test_evaluator):
            metric.detach()


def _metrics(evaluator) -> list[TNSMetric]:
    return [m for m in evaluator.metrics if isinstance(m, TNSMetric)]


def _save_best(hook: CheckpointHook, after_val_epoch, runner,
               metrics: dict) -> None:
    """Show a checkpoint hook the other metrics and those of ``save_best``.

    Where the others have no number, as without a detection, it sees none:
    mmengine then saves no best checkpoint.
    """
    own = _metrics(runner.val_evaluator)
    if len(own) < len(runner.val_evaluator.metrics):
        prefixes = tuple(f'{metric.prefix}/' for metric in own)
        best = {*hook.save_best}
        others = {key for key in metrics if not key.startswith(prefixes)}
        shown = best | others if others or best <= {*metrics} else ()
        metrics = {key: metrics[key] for key in metrics if key in shown}
    after_val_epoch(runner, metrics)
