"""Keeps NaN and infinite losses out of the weights."""
import functools
from pathlib import Path

import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmengine.registry import HOOKS
from mmengine.structures import BaseDataElement
from torch.nn.parameter import is_lazy

from ..utils.data_errors import in_a_line
from ..utils.files import DIVERGED, atomic_write
from ..utils.hook_helpers import ReplacedMethod, check_count, unwrap
from ..utils.random_state import get_random_state
from .atomic_checkpoint_hook import first_checkpoint_hook
from .resumable_loops import ResumableLoop

#: Name of the checkpoint from before the update with a non-finite loss.
NON_FINITE = 'nonfinite_iter_{}.pth'


@HOOKS.register_module()
class NonFiniteLossHook(Hook):
    """Stop, or skip the update, if the loss of any rank is not finite.

    The loss is checked right before the optimizer's step: the host waits for
    the forward pass only, with the backward pass in the GPU's queue. The
    first time, the state before that iteration is saved as
    ``nonfinite_iter_N.pth`` (N completed iterations): a resume from it meets
    the same batch and the same loss. The log names the images of the
    batches. If the training stops, ``diverged.txt`` in its work dir has the
    reason, until the next training there.

    With ``'skip'`` neither weights, optimizer nor BatchNorm averages see the
    batch; schedulers and averaged models go on. Each skip is logged. Under
    gradient accumulation the update of which the batch is a part is left out.

    Under automatic mixed precision such a batch is always skipped, up to
    ``max_skips`` in a row, since half precision overflows now and then; the
    loss scaler handles an overflow in the backward pass.

    Off, with a warning, where the optimizer wrapper has its own
    ``update_params``, as that of several optimizers.

    Args:
        action (str): ``'stop'`` ends the training, ``'skip'`` leaves the
            batch out. Defaults to ``'stop'``.
        max_skips (int): the maximum of skips without an update in between;
            one more stops the training. Defaults to 10.

    Raises:
        ValueError: on a wrong argument.
        FloatingPointError: in training, naming the checkpoint.
    """
    # The buffers are copied before any other hook of an iteration runs.
    priority = 'VERY_HIGH'

    def __init__(self, action: str = 'stop', max_skips: int = 10):
        if action not in ('stop', 'skip'):
            raise ValueError("NonFiniteLossHook.action: expected 'stop' or "
                             f"'skip', got {action!r}")
        check_count('NonFiniteLossHook.max_skips', max_skips)
        self.action = action
        self.max_skips = max_skips
        self.skipped = self._in_a_row = 0
        self._replaced: list[ReplacedMethod] = []
        self._finite: _Verdict | None = None
        self._saved = ''
        self._batch: object = None
        self._skips = self._spoilt = False
        self._random: dict = {}
        self._buffers: dict[str, torch.Tensor] = {}

    def before_train(self, runner) -> None:
        """Check every loss from here on."""
        self.after_train(runner)  # of an earlier one that failed
        if dist.is_main_process():
            Path(runner.work_dir, DIVERGED).unlink(missing_ok=True)
        wrapper = runner.optim_wrapper
        if type(wrapper).update_params is not OptimWrapper.update_params:
            runner.logger.warning(
                f'NonFiniteLossHook: a {type(wrapper).__name__} has its own '
                'way of stepping, so losses are not looked at')
            return
        self._skips = self.action == 'skip' or isinstance(
            wrapper, AmpOptimWrapper)
        self._spoilt = False
        self._replaced = [
            ReplacedMethod(wrapper, 'update_params',
                           functools.partial(self._update_params, runner)),
            ReplacedMethod(wrapper, 'step', self._step)]

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Keep the random state and the buffers before the forward pass."""
        self._batch = data_batch
        if self._replaced:
            self._random = get_random_state()
            self._buffers = {
                name: buffer.clone()
                for name, buffer in unwrap(runner.model).named_buffers()
                if not is_lazy(buffer)}

    def after_train(self, runner) -> None:
        """Restore the optimizer wrapper's methods."""
        while self._replaced:
            self._replaced.pop().undo()
        self._batch = None

    def _update_params(self, runner, update_params, loss, *args, **kwargs):
        finite = torch.isfinite(loss.detach()).all().to(torch.uint8)
        dist.all_reduce(finite, 'min')
        self._finite = verdict = _Verdict(finite)
        result = update_params(loss, *args, **kwargs)  # a patched one's
        self._finite = None
        if verdict.wait():
            return result
        # By the gradients of this batch, which an update has cleared.
        self._spoilt = not runner.optim_wrapper.should_update()
        runner.optim_wrapper._inner_count -= 1  # saved as it was before
        self._undo(runner)
        self._save(runner)
        if not self.skipped:
            self._name_images(runner, loss)
        self.skipped += 1
        self._in_a_row += 1
        self._stop_or_skip(runner, loss.item())

    def _step(self, step, *args, **kwargs):
        # A model may call step itself, with losses that are not checked.
        spoilt = self._finite is not None and (
            self._spoilt or not self._finite.wait())
        self._spoilt = False
        if not spoilt:
            self._in_a_row = 0
            return step(*args, **kwargs)

    def _stop_or_skip(self, runner, loss: float) -> None:
        what = (f'loss: expected a finite one on every rank, got {loss} on '
                f'rank {dist.get_rank()} in iteration {runner.iter + 1} (the '
                'state before it is '
                f'{self._saved or "not saved, without AtomicCheckpointHook"})')
        if self._skips and self._in_a_row <= self.max_skips:
            runner.optim_wrapper._inner_count += 1  # it counts as an iteration
            runner.logger.warning(
                f'{what}; NonFiniteLossHook has skipped its update, '
                f'{self.skipped} so far')
            return
        row = self._in_a_row
        often = f', {row} times in a row' if row > 1 else ''
        why = (f'{what}{often}; a lower learning rate, warm-up or clip_grad '
               "may prevent it, NonFiniteLossHook(action='skip', "
               'max_skips=...) leaves such batches out')
        if dist.is_main_process():
            with atomic_write(Path(runner.work_dir, DIVERGED)) as file:
                file.write(f'{why}\n'.encode())
        raise FloatingPointError(why)

    def _name_images(self, runner, loss: torch.Tensor) -> None:
        """Log the images of the batches; a collective call."""
        own = [] if loss.isfinite().all() else _images(self._batch)
        images = [in_a_line(path) for part in dist.all_gather_object(own)
                  for path in part]
        if images:
            runner.logger.warning(
                f'loss: not finite in iteration {runner.iter + 1} for the '
                f'images {", ".join(images)}; check them and their '
                'annotations (sizes, empty boxes)')

    def _undo(self, runner) -> None:
        for name, buffer in unwrap(runner.model).named_buffers():
            if name in self._buffers:  # not if it was lazy
                buffer.copy_(self._buffers[name])

    def _save(self, runner) -> None:
        """Save the first time; a collective call."""
        hook = first_checkpoint_hook(runner)
        loop = runner.train_loop
        if self._saved or hook is None or not isinstance(loop, ResumableLoop):
            return
        self._saved = hook.save(
            runner, NON_FINITE.format(runner.iter),
            dict(epoch=runner.epoch, iter=runner.iter), random=self._random,
            batches=loop.batches - 1, validation_due=False)


def _images(part) -> list[str]:
    """Paths of the images of a batch, if its samples have them."""
    if isinstance(part, BaseDataElement):
        return [str(part.img_path)] if 'img_path' in part else []
    if isinstance(part, dict):
        part = [*part.values()]
    if not isinstance(part, (list, tuple)):
        return []
    return [path for item in part for path in _images(item)]


class _Verdict:
    """A flag on its way from the device, waited for late.

    The event after the copy makes the wait end there, not with kernels that
    are queued later.
    """

    def __init__(self, flag: torch.Tensor):
        self._flag = flag.to('cpu', non_blocking=flag.is_cuda)  # pinned
        self._event = torch.cuda.Event() if flag.is_cuda else None
        if self._event is not None:
            self._event.record()

    def wait(self) -> bool:
        """Whether the flag is set."""
        if self._event is not None:
            self._event.synchronize()
        return bool(self._flag)
