"""Kills and requeues: nothing is lost, the end is the same."""
import json
import subprocess
import sys

import pytest
from jobs import HERE
from lab import missing

pytestmark = pytest.mark.soak


@pytest.mark.skipif(bool(missing()), reason=f'no Slurm: {missing()}')
def test_soak(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HERE / 'soak.py'), str(tmp_path),
         '--kills', '4', '--requeues', '2', '--epochs', '12'],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / 'soak.json').read_text())
    assert (found['kills'], found['requeues']) == (4, 2)
    assert found['kills_in_a_save'] >= 1
