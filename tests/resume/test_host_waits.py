"""In a training iteration nothing of this package waits for the device.

On a CPU nothing waits, but the calls that would are the same.
"""
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from torch.utils._python_dispatch import TorchDispatchMode
from toy_run import toy_runner

import stepnet_mm
from stepnet_mm.ops import ResidualTail

pytest.importorskip('mmpretrain')

OURS = str(Path(stepnet_mm.__file__).parent)
THEIRS = 'mmengine', 'mmpretrain', 'mmdet'
#: Read a device's values, or move them to the host.
READERS = 'item', 'cpu', 'tolist', 'numpy', '__bool__', '__float__', '__int__'
OPERATORS = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default, torch.ops.aten.equal.default,
    torch.ops.aten.masked_select.default}


def caller():
    """The file and function of ours that asks; None if a library does."""
    frame = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(OURS):
            return f'{Path(path).stem}.{frame.f_code.co_name}'
        if any(f'/{name}/' in path for name in THEIRS):
            return None
        frame = frame.f_back
    return None


class Waits(TorchDispatchMode):
    """Counts the waits, by who asked."""
    found = Counter()

    def note(self):
        who = caller()
        if who not in (None, 'tail_cpu.moments'):  # kernels of CPUs alone
            self.found[who] += 1

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in OPERATORS or func is torch.ops.aten.index.Tensor and any(
                i is not None and i.dtype == torch.bool for i in args[1]):
            self.note()
        return func(*args, **(kwargs or {}))


class WaitsHook(Hook):
    """One Counter for each iteration."""

    def __init__(self, waits):
        self.waits, self.iterations = waits, []

    def before_train_iter(self, runner, *args, **kwargs):
        self.waits.found = Counter()
        self.iterations.append(self.waits.found)


def noting(waits, method):
    """A method of a tensor that tells of its call."""

    def noted(*args, **kwargs):
        waits.note()
        return method(*args, **kwargs)

    return noted


@pytest.mark.core
def test_only_the_loss_is_waited_for(tmp_path, monkeypatch):
    ResidualTail.supports(*torch.rand(2, 1, 1, 2, 2))  # once a process
    hooks = [dict(type='NonFiniteLossHook', action='skip'),
             dict(type='PreemptionHook'), dict(type='LoadReportHook'),
             dict(type='TNSHook', interval=3)]
    runner = toy_runner(
        tmp_path, hooks, iterations=4,
        train_cfg=dict(type='ResumableIterBasedTrainLoop', max_iters=4),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=2),
            checkpoint=dict(type='AtomicCheckpointHook', interval=100,
                            by_epoch=False, save_last=False)))
    hook = WaitsHook(Waits())
    runner.register_hook(hook, priority='VERY_HIGH')
    for name in READERS:
        monkeypatch.setattr(torch.Tensor, name, noting(
            hook.waits, getattr(torch.Tensor, name)))
    with hook.waits:
        runner.train()
    tried, second, measured, fourth = hook.iterations
    # The counter sees what there is.
    assert measured['nsi_recorder.nsi'] and tried['nsi_recorder.nsi']
    assert {*second} == {*fourth} == {'non_finite_loss_hook.wait'}
