"""Logs neural stiffness while a model trains."""
import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS

from ..recording import TrajectoryRecorder
from ..stiffness import stage_summary, total_neural_stiffness


@HOOKS.register_module()
class TNSHook(Hook):
    """Log TNS and NSI of the current training batch every ``interval``.

    The training forward that runs anyway is read, nothing of it changes. TNS
    (Eq. 5), mean and maximum NSI (Eq. 4) of each stage, and the number of
    samples with an inf or NaN, which are left out of the others, go to the
    log and to every visualizer back end under ``stiffness/...``, at the
    iteration where they were measured.

    They do not pass through mmengine's message hub: what is there is repeated
    at every log step until it is measured again.

    Args:
        interval (int): iterations between measurements; the first comes at
            iteration ``interval``. Defaults to 50.

    Raises:
        ValueError: if ``interval`` is not positive, or the model has no
            residual block that can be measured.
    """
    priority = 'NORMAL'

    def __init__(self, interval: int = 50):
        if not isinstance(interval, int) or interval < 1:
            raise ValueError('TNSHook.interval: expected a positive number '
                             f'of iterations, got {interval!r}')
        self.interval = interval
        self._recorder = None

    def before_train(self, runner) -> None:
        """Fail before training, not at the first measurement."""
        self._stop()
        if runner.cfg.get('compile'):
            raise ValueError(
                'TNSHook: a compiled train_step does not see hooks that come '
                'later: set compile=False or take TNSHook out of '
                'custom_hooks')
        stage = TrajectoryRecorder(_model(runner)).stage
        if len(stage.unique()) == len(stage):
            runner.logger.warning(
                "TNSHook: every stage has one measured block (a stage's "
                'first block is left out), so no block can exceed its '
                "stage's mean and TNS is 0 by definition; NSI is logged all "
                'the same. TNS needs three blocks in a stage: set a greater '
                'backbone.depth (34 for ImageNet networks, 29 for '
                'StepResNetCIFAR).')

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        self._stop()
        if self.every_n_train_iters(runner, self.interval):
            self._recorder = TrajectoryRecorder(_model(runner)).__enter__()

    def after_train_iter(self,
                         runner,
                         batch_idx,
                         data_batch=None,
                         outputs=None) -> None:
        recorder = self._stop()
        if recorder is None:
            return
        # Every rank takes part, or the others would wait for it.
        scalars = measure(recorder.nsi, recorder.stage)
        if scalars == {'nonfinite': 0}:
            runner.logger.warning(
                'TNSHook: the backbone was not called in this iteration, so '
                'nothing was measured')
            return
        numbers = '  '.join(f'{k}: {v:.4g}' for k, v in scalars.items())
        runner.logger.info(f'Iter(train) [{runner.iter + 1}/'
                           f'{runner.max_iters}]  {numbers}')
        runner.visualizer.add_scalars(
            {f'stiffness/{k}': v
             for k, v in scalars.items()},
            step=runner.iter + 1)

    def _stop(self):
        """Detach the recorder, also one that an exception left behind."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.__exit__()
        return recorder


def measure(nsi: torch.Tensor, stage: torch.Tensor) -> dict:
    """TNS and NSI of all ranks' samples.

    Args:
        nsi (Tensor): (N, L), this rank's samples.
        stage (Tensor): (L,), the stage label of every column.

    Returns:
        dict[str, float]: ``tns``, ``nsi_stage{s}_mean``,
        ``nsi_stage{s}_max`` and ``nonfinite`` (a count of samples); the last
        alone if no sample is finite.
    """
    stages, mean, maximum, finite = stage_summary(nsi, stage)
    tns = total_neural_stiffness(nsi, stage)
    columns = torch.cat([tns[:, None], mean], 1)[finite]
    sums = torch.cat([
        columns.sum(0),
        torch.stack([finite.sum(), (~finite).sum()]).double()
    ])
    highest = maximum[finite].amax(0) if finite.any() else torch.full(
        (len(stages), ), -torch.inf, dtype=sums.dtype)
    dist.all_reduce(sums)
    dist.all_reduce(highest, op='max')
    count, lost = sums[-2:].tolist()
    if not count:
        return {'nonfinite': lost}
    scalars = {'tns': sums[0].item() / count}
    for s, total, top in zip(stages.tolist(), sums[1:-2], highest):
        scalars[f'nsi_stage{s}_mean'] = total.item() / count
        scalars[f'nsi_stage{s}_max'] = top.item()
    return {**scalars, 'nonfinite': lost}


def _model(runner) -> torch.nn.Module:
    model = runner.model
    model = model.module if is_model_wrapper(model) else model
    return getattr(model, 'backbone', model)
