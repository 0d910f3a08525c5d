import socket

import pytest

from stepnet_mm.launch.distributed import first_host
from stepnet_mm.utils.slurm import requeue

FAKE = '''#!/bin/sh
echo "$@" >> {log}
case "$1 $2" in
  "show job") echo "JobId=7 JobState={state} Restarts=0";;
  "show node") echo "NodeName=gpu3 NodeAddr=127.0.0.1 NodeHostName=x";;
  "requeue 7") {requeue};;
esac
'''


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """A stand-in for Slurm's command; the real one is in tests/slurm."""
    log = tmp_path / 'log'
    log.touch()

    def install(state='RUNNING', requeue='true'):
        path = tmp_path / 'scontrol'
        path.write_text(FAKE.format(log=log, state=state, requeue=requeue))
        path.chmod(0o755)
        monkeypatch.setenv('PATH', str(tmp_path), prepend=':')
        return lambda: log.read_text().splitlines()

    monkeypatch.setenv('SLURM_JOB_ID', '7')
    monkeypatch.delenv('SLURM_RESTART_COUNT', raising=False)
    return install


def said():
    lines = []
    requeue(3, lines.append)
    return lines


def test_a_requeue_is_said_before_it_is_done(scontrol, monkeypatch):
    """Slurm may end this process before scontrol returns."""
    calls = scontrol()
    before = []
    requeue(3, lambda text: before.extend([text, *calls()]))
    assert before == ['requeueing Slurm job 7, 1 of 3', 'show job -o 7']
    assert calls()[-1] == 'requeue 7'
    # The last task has the number of the array as its own.
    monkeypatch.setenv('SLURM_ARRAY_JOB_ID', '7')
    monkeypatch.setenv('SLURM_ARRAY_TASK_ID', '3')
    said()
    assert calls()[2:] == ['show job -o 7_3', 'requeue 7_3']


def test_what_is_not_requeued(scontrol, monkeypatch):
    calls = scontrol('CANCELLED')
    assert said() == ['Slurm job 7 is CANCELLED: not requeued']
    monkeypatch.setenv('SLURM_RESTART_COUNT', '3')
    assert 'came back 3 times' in said()[0]
    assert not any('requeue' in call for call in calls())
    monkeypatch.setenv('SLURM_RESTART_COUNT', '2')
    scontrol(requeue='echo "Requested operation not allowed" >&2; exit 1')
    assert 'could not be requeued: scontrol requeue 7: ' in said()[1]
    monkeypatch.setenv('PATH', '')
    assert 'could not be requeued' in said()[0]
    monkeypatch.delenv('SLURM_JOB_ID')
    assert said() == ['no Slurm job to requeue']


def test_the_first_host(scontrol, monkeypatch):
    """By its name, and if that does not resolve by its address in Slurm."""
    with monkeypatch.context() as patch:
        patch.setattr(socket, 'getaddrinfo', lambda *_: [])
        for nodes, first in (('gpu3', 'gpu3'), ('gpu[003,7-9],c1', 'gpu003'),
                             ('rack[1-2]n[04-07]', 'rack1n04')):
            assert first_host(nodes) == first

    def unknown(*_):
        raise OSError

    scontrol()
    monkeypatch.setattr(socket, 'getaddrinfo', unknown)
    assert first_host('gpu[3-4]') == '127.0.0.1'
    monkeypatch.setenv('PATH', '')  # as in a container
    with pytest.raises(ValueError, match='MASTER_ADDR: .*got gpu3.*scontrol'):
        first_host('gpu[3-4]')
