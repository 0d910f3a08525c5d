"""A real Slurm with two virtual nodes on this machine, in a private folder."""
import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
from waiting import until

#: Fast enough for tests: a requeued job starts after some 10 s, not 150.
CONFIG = '''
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={base}/munge.sock,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd-%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=20
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={n0} CPUs=2 \
State=UNKNOWN
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=2 \
State=UNKNOWN
PartitionName=main Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
'''
COMMANDS = ('munged', 'slurmctld', 'slurmd', 'srun', 'sbatch', 'scontrol')


def missing() -> str:
    """Why there can be no Slurm here, '' where there can."""
    absent = [name for name in COMMANDS if shutil.which(name) is None]
    if absent:
        return (f'no {", ".join(absent)} (Debian: apt-get install '
                '--no-install-recommends slurm-wlm munge)')
    return '' if os.geteuid() == 0 else 'Slurm is started as root here'


class Lab:
    """Context manager around the daemons, in an empty folder."""

    def __init__(self, base):
        self.base = Path(base)
        self.environment = dict(os.environ, SLURM_CONF=f'{self.base}/conf')

    def __enter__(self):
        for name in ('state', 'spool'):
            (self.base / name).mkdir(parents=True)
        # munge wants every folder above its socket closed to others.
        self.base.chmod(0o755)
        key = self.base / 'key'
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        port, n0, n1 = free_ports(3)
        (self.base / 'conf').write_text(CONFIG.format(
            host=socket.gethostname(), base=self.base, port=port, n0=n0,
            n1=n1))
        try:
            self.run('munged', '--force', f'--key-file={self.base}/key',
                     f'--socket={self.base}/munge.sock',
                     f'--pid-file={self.base}/munged.pid',
                     f'--log-file={self.base}/munged.log',
                     f'--seed-file={self.base}/munged.seed')
            self.run('slurmctld')
            for node in ('n0', 'n1'):
                self.run('slurmd', '-N', node)
            until(lambda: self.run('sinfo', '-ho', '%D %t') == '2 idle', 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if (self.base / 'slurmctld.pid').exists():
            if jobs := self.run('squeue', '-ho', '%i', check=False).split():
                self.run('scancel', '--signal=KILL', *jobs, check=False)
                self.run('scancel', *jobs, check=False)
                time.sleep(1)
        for name in ('slurmd-n0', 'slurmd-n1', 'slurmctld', 'munged'):
            path = self.base / f'{name}.pid'
            with suppress(FileNotFoundError, ValueError, psutil.NoSuchProcess):
                process = psutil.Process(int(path.read_text()))
                process.terminate()
                if psutil.wait_procs([process], timeout=10)[1]:
                    process.kill()

    def run(self, *command, check=True, **environment):
        """What a command prints; its error's text is in the exception."""
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True,
            env=dict(self.environment, **environment))
        if check and done.returncode:
            raise RuntimeError(f'{command}: {done.stdout}{done.stderr}')
        return done.stdout.strip()

    def field(self, job, name):
        """A field of ``scontrol show job``."""
        shown = self.run('scontrol', 'show', 'job', '-o', job)
        return dict(part.split('=', 1) for part in shown.split()
                    if '=' in part)[name]


def free_ports(number):
    """Ports that nobody listens at."""
    with ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server(('', 0)))
                   for _ in range(number)]
        return [one.getsockname()[1] for one in sockets]
