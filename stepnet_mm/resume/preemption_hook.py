"""Saves a training and leaves at SIGUSR1, SIGUSR2 or SIGTERM."""
import functools
import sys
from datetime import timedelta

import torch
from mmengine import dist
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import HOOKS

from ..utils.hook_helpers import ReplacedMethod, check_count, loop_loaders
from ..utils.job_signals import SignalListener, ignore_in_workers
from ..utils.random_state import set_random_state
from ..utils.slurm import requeue
from .atomic_checkpoint_hook import AtomicCheckpointHook, first_checkpoint_hook
from .resumable_loops import ResumableLoop, in_own_validation
from .training_state import accumulating

#: Exit code of a preempted run (TEMPFAIL of sysexits.h).
EXIT_PREEMPTED = 75


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Save and leave at a signal, to be resumed bit for bit.

    The signal only sets a flag. After the next iteration, in training or
    validation, all ranks agree on it; they save, the first one requeues the
    Slurm job if its command resumes, and all leave with exit code 75.
    ``--resume`` goes on.

    A second signal, more than a second after the first, ends the process as
    soon as Python code runs; the checkpoint before stays undamaged.

    Args:
        max_requeues (int): maximum of requeues of a Slurm job; 0 for none.
            Defaults to 20.

    Raises:
        ValueError: on a wrong argument; before training, without
            AtomicCheckpointHook or one of the resumable loops.
    """
    priority = 'LOWEST'

    def __init__(self, max_requeues: int = 20):
        check_count('PreemptionHook.max_requeues', max_requeues)
        self.max_requeues = max_requeues
        self._listener = SignalListener()
        self._group: torch.distributed.ProcessGroup | None = None
        self._replaced: list[ReplacedMethod] = []
        #: Those whose averaged weights are in the model now.
        self._swapped: set[EMAHook] = set()
        self._agreements = 0

    def before_run(self, runner) -> None:
        """Have loader workers ignore the signals."""
        for loop in (runner._train_loop, runner._val_loop):
            for loader in loop_loaders(loop):
                ignore_in_workers(loader)

    def before_train(self, runner) -> None:
        """Begin to listen."""
        self.after_train(runner)  # of an earlier one that failed
        _checkpoint_hook(runner)  # or an error, before anything is trained
        self._replaced = [
            ReplacedMethod(hook, '_swap_ema_parameters',
                           functools.partial(self._note_swap, hook))
            for hook in runner.hooks if isinstance(hook, EMAHook)]
        if dist.is_distributed() and self._group is None:
            self._group = _cpu_group(runner.cfg)
        if taken := self._listener.start():
            runner.logger.warning(
                'PreemptionHook does not see '
                f'{", ".join(s.name for s in taken)}: another handler is '
                'there already, and stays')

    def after_train_iter(self, runner, *_, **__) -> None:
        """Save and leave if any rank got a signal."""
        if self._agreed() and not accumulating(runner.optim_wrapper):
            self._leave(runner, runner.epoch, runner.iter + 1)

    def before_val(self, runner) -> None:
        """Count the batches that all ranks have."""
        if in_own_validation(runner):
            loaders = loop_loaders(runner.val_loop)
            length = torch.tensor(
                len(loaders[0]) if len(loaders) == 1 else 0, device='cpu')
            dist.all_reduce(length, 'min', self._group)
            self._agreements = int(length)

    def after_val_iter(self, runner, batch_idx, *_, **__) -> None:
        """Save and leave if any rank got a signal.

        The validation runs again after the resume. A hook's own validation
        is part of an iteration, and ends with it.
        """
        if (in_own_validation(runner) and batch_idx < self._agreements
                and self._agreed() and not accumulating(runner.optim_wrapper)):
            for hook in [*self._swapped]:
                hook._swap_ema_parameters()
            set_random_state(runner.train_loop.random_before_val)
            self._leave(runner, runner.epoch, runner.iter)

    def after_train(self, runner) -> None:
        """Remove the signal handlers."""
        self._listener.stop()
        while self._replaced:
            self._replaced.pop().undo()
        self._swapped = set()

    def _note_swap(self, hook: EMAHook, swap) -> None:
        swap()
        self._swapped ^= {hook}

    def _agreed(self) -> bool:
        if self._group is None:
            return self._listener.received
        # On the CPU, over gloo: nothing waits for the GPU.
        flag = torch.tensor(int(self._listener.received), device='cpu')
        dist.all_reduce(flag, 'max', self._group)
        return bool(flag)

    def _leave(self, runner, epoch: int, iteration: int) -> None:
        runner.logger.warning(
            f'PreemptionHook: told to stop; saving at iteration {iteration}')
        hook = _checkpoint_hook(runner)
        path = hook.save_out_of_turn(runner, epoch, iteration)
        try:  # now, for a requeue ends this process at any moment
            runner.visualizer.close()
        except Exception as error:  # of a server that is gone
            runner.logger.warning(f'PreemptionHook: {error!r} while the '
                                  'visualizer was closed; goes on')
        if dist.is_main_process():
            runner.logger.warning(
                f'PreemptionHook: saved {path}; leaving with exit code '
                f'{EXIT_PREEMPTED}, --resume goes on')
            # Before the others leave: srun ends the job when one does.
            if hook.resumes_last:
                requeue(self.max_requeues, runner.logger.warning)
            else:
                runner.logger.warning(
                    'PreemptionHook: not requeued, since the same command '
                    'would not go on from it (it has no --resume, or one '
                    'with a PATH)')
        dist.barrier(self._group)
        sys.exit(EXIT_PREEMPTED)


def _cpu_group(cfg):
    """Over gloo the ranks agree without a wait for the GPU."""
    seconds = (cfg.get('env_cfg') or {}).get('dist_cfg', {}).get('timeout')
    try:
        return torch.distributed.new_group(
            backend='gloo', timeout=timedelta(seconds=seconds or 1800))
    except RuntimeError as error:
        raise ConnectionError(
            'PreemptionHook: expected ranks that reach one another over gloo, '
            f'got {error}; set GLOO_SOCKET_IFNAME to the network interface '
            'between the nodes, as NCCL_SOCKET_IFNAME is set') from error


def _checkpoint_hook(runner) -> AtomicCheckpointHook:
    hook = first_checkpoint_hook(runner)
    if hook is None or not isinstance(runner.train_loop, ResumableLoop):
        raise ValueError(
            'PreemptionHook: expected train_cfg.type '
            'ResumableEpochBasedTrainLoop or ResumableIterBasedTrainLoop and '
            'default_hooks.checkpoint.type AtomicCheckpointHook, got '
            f'{type(runner.train_loop).__name__} and '
            f'{"this hook" if hook else "another hook"}; set both, or take '
            'PreemptionHook out of custom_hooks')
    return hook
