"""Trains nothing, and does as its config says in `behaviour`."""
import json
import os
import signal
import sys
import time
from pathlib import Path

cfg = {}
exec(Path(sys.argv[1]).read_text(), cfg)
folder = Path(sys.argv[sys.argv.index('--work-dir') + 1])
folder.mkdir(parents=True, exist_ok=True)
behaviour = cfg['behaviour']
TOP1 = {'not finite': float('nan')}
with open(folder / 'train.starts', 'a') as file:
    file.write(f'{os.getpid()}\n')
first = len((folder / 'train.starts').read_text().split()) == 1


def leave(*_):
    time.sleep(.1)
    sys.exit(75)


def log():
    start = folder / time.strftime('%Y%m%d_%H%M%S')
    (start / 'vis_data').mkdir(parents=True, exist_ok=True)
    (start / f'{start.name}.log').write_text(
        '    GPU 0,1: A GPU\n'
        '2026/11/24 01:45:10 - mmengine - INFO - stepnet_mm: 1.0.0, abc\n'
        '2026/11/24 01:45:10 - mmengine - INFO - stepnet_mm: machine: '
        'A processor, 3 threads\n'
        'Epoch(train)  [2][10/10] lr\n')
    lines = [line for n in (1, 2) for line in (
        dict(loss=3. - n, epoch=n, iter=10 * n, step=10 * n),
        {'stiffness/tns': .5, 'step': 100 * n},
        {'accuracy/top1': TOP1.get(behaviour, 50. + n), 'data_time': .1,
         'step': n})]
    if behaviour == 'silent':
        lines = [line for line in lines if 'accuracy/top1' not in line]
    (start / 'vis_data/scalars.json').write_text(
        ''.join(json.dumps(line) + '\n' for line in lines))


if behaviour == 'fail':
    print('\n'.join(f'line {n}' for n in range(40)))
    sys.exit(3)
if behaviour == 'steer':
    sys.exit('\x1b]0;title\a\x9b2J')
if behaviour == 'full disk':
    sys.exit('OSError: [Errno 28] No space left on device')
if behaviour == 'crash':
    os.kill(os.getpid(), signal.SIGSEGV)
if behaviour == 'killed always' or behaviour == 'killed once' and first:
    os.kill(os.getpid(), signal.SIGKILL)
if behaviour == 'diverge':
    log()
    (folder / 'diverged.txt').write_text('loss: expected a finite one')
    sys.exit(1)
if behaviour == 'preempted' and first:
    from stepnet_mm.utils.slurm import requeue
    signal.signal(signal.SIGUSR1, lambda *_: leave(
        requeue(20, (folder / 'requeue.txt').write_text)))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
if behaviour == 'deaf':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if behaviour == 'long' and first:
    signal.signal(signal.SIGTERM, leave)
if behaviour == 'deaf' or behaviour in ('long', 'preempted') and first:
    (folder / 'listens').touch()
    time.sleep(60)
time.sleep(cfg.get('seconds', 0))
log()
if behaviour == 'skip':
    (folder / 'nonfinite_iter_5.pth').touch()
(folder / 'visible.txt').write_text(
    os.environ.get('CUDA_VISIBLE_DEVICES', 'all'))
(folder / 'job.txt').write_text(' '.join(
    name for name in os.environ if name.startswith('SLURM_')))
(folder / 'epoch_2.pth').touch()
for number in cfg.get('best', ()):
    (folder / f'best_accuracy_top1_epoch_{number}.pth').touch()
(folder / 'last_checkpoint').write_text('/elsewhere/epoch_2.pth')
