"""Says that a training takes what its config says."""
import json
import os
import sys
import time
from pathlib import Path

cfg = {}
exec(Path(sys.argv[1]).read_text(), cfg)
if cfg['behaviour'] == 'long':
    begun = Path(__file__).with_name('begun')
    begun.with_suffix('.part').write_text(str(os.getpid()))
    begun.with_suffix('.part').rename(begun)
    time.sleep(60)
if cfg['behaviour'] == 'fail':
    sys.exit('ValueError: no such step')
out = Path(sys.argv[sys.argv.index('--out') + 1])
out.write_text(json.dumps(dict(seconds=cfg['seconds'])))
with open(Path(__file__).with_name('calls'), 'a') as file:
    job = [name for name in os.environ if name.startswith('SLURM_')]
    print(*sys.argv[2:4], *sys.argv[6:], os.environ['OMP_NUM_THREADS'], *job,
          file=file)
