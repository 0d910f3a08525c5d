"""Writes made numbers of an ablation."""
import json
import os
import sys
from pathlib import Path

out = Path(sys.argv[sys.argv.index('--out') + 1])
out.parent.mkdir(exist_ok=True)
with open(out.parents[1] / 'ablate.starts', 'a') as file:
    file.write(f'{os.getpid()}\n')
moments = dict(over_samples=.02, over_positions=0., over_channels=.1)
out.write_text(json.dumps(dict(
    metrics=dict(trained={'accuracy/top1': 52.}, per_channel={
        'accuracy/top1': 51.}, per_block={'accuracy/top1': None}),
    steps=dict(a=dict(moments, mean=.2), b=dict(moments, mean=.4)))))
