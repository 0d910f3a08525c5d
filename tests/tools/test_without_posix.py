"""A training where Python has no signals and locks of POSIX."""
import builtins
import runpy
import signal
import sys
from pathlib import Path

import fresh
import pytest


def train_without_posix(root, config, work):
    """Where signals to a process, and file locks, are not to be had."""
    import cv2
    import matplotlib.pyplot
    import mmengine.runner
    import mmpretrain.datasets
    import mmpretrain.models
    import tensorboard
    for name in ('pthread_sigmask', 'sigwaitinfo', 'SIGUSR1', 'SIGUSR2',
                 'setitimer', 'SIGALRM'):
        delattr(signal, name)
    find = builtins.__import__

    def no_import(name, where=None, *args, **kwargs):
        if name in ('fcntl', 'resource') and (
                where['__name__'].startswith('stepnet_mm')):
            raise ModuleNotFoundError(name)
        return find(name, where, *args, **kwargs)

    builtins.__import__ = no_import
    sys.argv = ['train.py', str(config), '--work-dir', str(work)]
    runpy.run_path(str(root / 'tools/train.py'), run_name='__main__')


@pytest.mark.long
def test_a_system_without_posix_signals_and_locks(classifier, tmp_path):
    work = tmp_path / 'work'
    fresh.printed_by(tmp_path, train_without_posix,
                     Path(__file__).parents[2], classifier, work)
    assert (work / 'epoch_2.pth').is_file()
