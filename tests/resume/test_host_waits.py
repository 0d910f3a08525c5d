"""In a training iteration nothing of this package waits for the device.

On a CPU nothing waits, but the calls that would are the same.
"""
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from mmengine.hooks import Hook
from toy_run import toy_runner

import stepnet_mm
from stepnet_mm.ops import ResidualTail

OURS = str(Path(stepnet_mm.__file__).parent)
THEIRS = 'mmengine', 'mmpretrain', 'mmdet'
#: Read a device's values, or move them to the host.
READERS = ('item', 'cpu', 'tolist', 'numpy', 'nonzero', '__bool__',
           '__float__', '__int__')


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


@pytest.mark.core
def test_only_the_loss_is_waited_for(tmp_path, monkeypatch):
    """Each iteration counts the waits in it, by who asked."""
    ResidualTail.supports(*torch.rand(2, 1, 1, 2, 2))  # once a process
    iterations, hook = [Counter()], Hook()
    hook.before_train_iter = lambda *_, **__: iterations.append(Counter())

    def noting(method):
        def noted(*args, **kwargs):
            who = caller()
            if who not in (None, 'tail_cpu.moments'):  # kernels of CPUs alone
                iterations[-1][who] += 1
            return method(*args, **kwargs)
        return noted

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
    runner.register_hook(hook, priority='VERY_HIGH')
    for name in READERS:
        monkeypatch.setattr(
            torch.Tensor, name, noting(getattr(torch.Tensor, name)))
    runner.train()
    _, tried, second, measured, fourth = iterations
    # The counter sees what there is, and the first try reads no NSI.
    name = 'trajectory_recorder.nsi'
    assert measured[name] and not tried[name]
    assert {*second} == {*fourth} == {'non_finite_loss_hook.wait'}
