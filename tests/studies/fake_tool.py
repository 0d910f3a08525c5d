"""Stands for each tool of a study; train.py does as its config says."""
import json
import os
import signal
import sys
import time
from pathlib import Path

cfg = {}
exec(Path(sys.argv[1]).read_text(), cfg)
folder = Path(cfg['work_dir'])
tool = Path(sys.argv[0]).stem
options = dict(zip(sys.argv, sys.argv[1:]))
starts = folder / f'{tool}.starts'
with open(starts, 'a') as file:
    file.write(f'{os.getpid()}\n')
first = len(starts.read_text().split()) == 1
HEAD = 'x - mmengine - INFO - stepnet_mm: '


def log(top1=50., key='accuracy/top1'):
    """Two epochs, which end at two points more."""
    start = folder / time.strftime('%Y%m%d_%H%M%S')
    (start / 'vis_data').mkdir(parents=True, exist_ok=True)
    (start / f'{start.name}.log').write_text(
        f'    GPU 0,1: A GPU\n{HEAD}1.0.0, abc\n{HEAD}machine: A processor, '
        '3 threads\nEpoch(train)  [2][10/10] lr\n')
    (start / 'vis_data/scalars.json').write_text(''.join(
        json.dumps(line) + '\n' for n in (1, 2) for line in (
            dict(loss=3. - n, epoch=n, iter=10 * n, step=10 * n),
            {'stiffness/tns': .5, 'step': 100 * n},
            {key: top1 + n, 'data_time': .1, 'step': n})))


def finish(*best, **result):
    log(**result)
    (folder / 'environment').write_text(json.dumps(dict(os.environ)))
    (folder / 'epoch_2.pth').touch()
    for number in best:
        (folder / f'best_accuracy_top1_epoch_{number}.pth').touch()
    (folder / 'last_checkpoint').write_text('/elsewhere/epoch_2.pth')


def diverge():
    log()
    (folder / 'diverged.txt').write_text('loss: expected a finite one')
    sys.exit(1)


def stay():
    """Until TERM comes, at the first start."""
    if not first:
        return finish()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
    (folder / 'listens').touch()
    time.sleep(60)


def write(content, path=None):
    path = Path(path or options['--out'])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str)
                    else json.dumps(content))


if tool == 'train':
    exec(cfg['behaviour'])
elif tool == 'measure_stiffness':
    write((Path(__file__).parents[1] / 'record.jsonl').read_text())
elif tool == 'ablate_steps':
    moments = dict(over_samples=.02, over_positions=0., over_channels=.1)
    write(dict(
        metrics=dict(trained={'accuracy/top1': 52.}, per_channel={
            'accuracy/top1': 51.}, per_block={'accuracy/top1': None}),
        steps=dict(a=dict(moments, mean=.2), b=dict(moments, mean=.4))))
else:
    assert sys.argv[2].endswith('best_accuracy_top1_epoch_10.pth')
    write({'accuracy/top1': 49.1234567, 'accuracy/other': float('nan'),
           'time': 1}, f'{options["--work-dir"]}/1/1.json')
