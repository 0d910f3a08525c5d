"""Twenty kills and five requeues: nothing is lost, the end is the same."""
import json
import os
import subprocess
import sys

import pytest
from jobs import ENVIRONMENT, HERE
from lab import missing

pytestmark = pytest.mark.soak


@pytest.mark.skipif(bool(missing()), reason=f'no Slurm: {missing()}')
def test_soak(tmp_path):
    paths = [str(HERE), str(HERE.parent / 'resume')]
    done = subprocess.run(
        [sys.executable, str(HERE / 'soak.py'), str(tmp_path)],
        capture_output=True, text=True,
        env=dict(os.environ, **{**ENVIRONMENT,
                                'PYTHONPATH': os.pathsep.join(paths)}))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / 'soak.json').read_text())
    assert (found['kills'], found['requeues']) == (20, 5)
    assert found['kills_in_a_save'] >= 3
