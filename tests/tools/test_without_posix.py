"""A training where Python has no signals and locks of POSIX."""
import builtins
import signal

import fresh
import pytest
from jobs import run_train


def train_without_posix(config, work):
    """Where signals to a process, and file locks, are not to be had."""
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
    run_train(config, '--work-dir', work)


@pytest.mark.long
def test_a_system_without_posix_signals_and_locks(classifier, tmp_path):
    work = tmp_path / 'work'
    fresh.printed_by(tmp_path, train_without_posix, classifier, work)
    assert (work / 'epoch_2.pth').is_file()
