"""Leaves training when it is told to, with all of it saved."""
import os
import signal
import sys
import threading
import time

import torch
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import BaseLoop

from ..datasets.deaf_workers import JOB_SIGNALS, deafen
from ..datasets.random_state import get_random_state, set_random_state
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .loops import ResumableLoop
from .slurm import requeue
from .training_state import accumulating

#: The exit code of a run that stopped to go on later (sysexits.h: TEMPFAIL).
EXIT_PREEMPTED = 75
#: Signals within so many seconds are one: a launcher may pass on a second.
_SAME = 1.0


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Save and leave on a signal, to be resumed bit for bit.

    The signal sets a flag and nothing else. At the end of the next iteration,
    in training or validation, all ranks agree on it; the first one saves and
    writes ``last_checkpoint``, puts the Slurm job back into the queue where
    there is one, and all leave with exit code 75. ``--resume`` goes on.

    A second signal, more than a second after the first, or a save that takes
    longer than ``save_timeout``, ends the process at once; the last
    checkpoint is whole in any case.

    Args:
        signals (sequence[str]): their names. Defaults to USR1, USR2, TERM.
        max_requeues (int): how often a Slurm job may be put back; 0 for
            never. Defaults to 20.
        save_timeout (float): seconds. Defaults to 300.

    Raises:
        ValueError: on a wrong argument; before training, without
            AtomicCheckpointHook or one of the resumable loops.
    """
    priority = 'LOWEST'

    def __init__(self,
                 signals=tuple(s.name for s in JOB_SIGNALS),
                 max_requeues: int = 20,
                 save_timeout: float = 300):
        known = {s.name for s in signal.Signals} - {'SIGKILL', 'SIGSTOP'}
        if isinstance(signals, str) or not set(signals) <= known:
            raise ValueError('PreemptionHook.signals: expected a list of '
                             "names such as 'SIGUSR1' (SIGKILL and SIGSTOP "
                             f'cannot be caught), got {signals!r}')
        self.signals = [signal.Signals[name] for name in signals]
        self.max_requeues = max_requeues
        self.save_timeout = save_timeout
        self._received = None
        self._group = None
        self._before = {}

    def before_run(self, runner) -> None:
        for loop in (runner._train_loop, runner._val_loop):
            if isinstance(loop, BaseLoop):
                deafen(loop.dataloader, self.signals)

    def before_train(self, runner) -> None:
        self._checkpoints = _checkpoint_hook(runner)
        self._received = None
        if dist.is_distributed() and self._group is None:
            self._group = _cpu_group()
        if threading.current_thread() is threading.main_thread():
            self._before = {
                number: signal.signal(number, self._receive)
                for number in self.signals
            }
            # tools/train.py has those held back that came before.
            if hasattr(signal, 'pthread_sigmask'):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, self.signals)

    def after_train_iter(self, runner, *_, **__) -> None:
        if self._agreed() and not accumulating(runner.optim_wrapper):
            self._leave(runner, runner.epoch, runner.iter + 1)

    def before_val(self, runner) -> None:
        if self._before:
            self._random = get_random_state()
            # Where ranks have unequal shares, they agree while all have some.
            length = torch.tensor(len(runner.val_dataloader))
            self._reduce(length, 'MIN')
            self._agreements = length.item()

    def after_val_iter(self, runner, batch_idx, *_, **__) -> None:
        if (self._before and batch_idx < self._agreements
                and self._agreed()):
            self._close_validation(runner)
            self._leave(runner, runner.epoch, runner.iter)

    def after_train(self, runner) -> None:
        self._give_signals_back()

    def _receive(self, number, frame) -> None:
        now = time.monotonic()
        if self._received is None:
            self._received = now
        elif now - self._received > _SAME:
            os._exit(128 + number)

    def _agreed(self) -> bool:
        flag = torch.tensor(int(self._received is not None))
        self._reduce(flag, 'MAX')
        return bool(flag)

    def _reduce(self, value: torch.Tensor, operation: str) -> None:
        if self._group is not None:
            torch.distributed.all_reduce(
                value,
                getattr(torch.distributed.ReduceOp, operation),
                group=self._group)

    def _close_validation(self, runner) -> None:
        """As if it had not begun; it runs again after the resume.

        Hooks that changed something at its begin (EMAHook: the weights) are
        asked to undo it; the others would log half a validation.
        """
        for hook in runner.hooks:
            if type(hook).before_val_epoch is not Hook.before_val_epoch:
                hook.after_val_epoch(runner, metrics=None)
        set_random_state(self._random)

    def _leave(self, runner, epoch: int, iteration: int) -> None:
        runner.logger.warning(
            f'PreemptionHook: told to stop; saving at iteration {iteration}')
        watch = threading.Timer(self.save_timeout, _give_up,
                                (self.save_timeout, ))
        watch.daemon = True
        watch.start()
        path = self._checkpoints.save_out_of_turn(runner, epoch, iteration)
        if self._group is not None:  # nobody leaves before it is written
            torch.distributed.barrier(self._group)
        watch.cancel()
        if dist.is_main_process():
            runner.logger.warning(
                f'PreemptionHook: saved {path}; {requeue(self.max_requeues)}. '
                f'Leaving with exit code {EXIT_PREEMPTED}; --resume goes on')
        runner.visualizer.close()
        sys.exit(EXIT_PREEMPTED)

    def _give_signals_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}


def _cpu_group():
    """Over gloo the ranks agree without a wait for the GPU."""
    try:
        return torch.distributed.new_group(backend='gloo')
    except RuntimeError as error:
        raise ConnectionError(
            f'PreemptionHook: the ranks do not reach one another over gloo '
            f'({error}); set GLOO_SOCKET_IFNAME to the network interface '
            'between the nodes, as NCCL_SOCKET_IFNAME is set') from error


def _give_up(seconds: float) -> None:
    sys.stderr.write(f'PreemptionHook: the save took longer than {seconds} s '
                     '(save_timeout); the checkpoint before it is whole\n')
    sys.stderr.flush()
    os._exit(1)


def _checkpoint_hook(runner) -> AtomicCheckpointHook:
    if not isinstance(runner.train_loop, ResumableLoop):
        raise ValueError(
            'PreemptionHook: expected train_cfg.type '
            'ResumableEpochBasedTrainLoop or ResumableIterBasedTrainLoop, '
            f'got {type(runner.train_loop).__name__}')
    for hook in runner.hooks:
        if isinstance(hook, AtomicCheckpointHook):
            return hook
    raise ValueError('PreemptionHook: expected default_hooks.checkpoint='
                     "dict(type='AtomicCheckpointHook', ...) to save with")

