"""A test that hangs fails, shows where, and costs nothing but itself."""
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A child that says when it is there, below a shell; its place is all in all.
HANGING = '''
import os, subprocess, sys

CHILD = """
import os, time

def a_rank_waits_for_ever():
    open('pid', 'w').write(str(os.getpid()))
    time.sleep(1000)

a_rank_waits_for_ever()
"""

def test_a_hang():
    subprocess.run(['sh', '-c', '"$0" -c "$1"; :', sys.executable, CHILD])

def test_the_next():
    pass
'''


@pytest.mark.long
def test_a_hang_costs_one_test_and_shows_its_processes(tmp_path, monkeypatch):
    (tmp_path / 'test_hanging.py').write_text(HANGING)
    monkeypatch.setenv('PYTHONPATH', f'{ROOT / "tests/support"}')
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-c', ROOT / '.pytest.ini', '-p',
         'limits', '-p', 'no:cacheprovider', '--rootdir', tmp_path,
         '-n1', '--timeout=3', 'test_hanging.py'],
        cwd=tmp_path, capture_output=True, text=True)
    assert '1 failed, 1 passed' in done.stdout
    assert 'a_rank_waits_for_ever (<string>:6)' in done.stdout
    assert 'test_a_hang (test_hanging.py' in done.stdout
    child = int((tmp_path / 'pid').read_text())
    assert not [process for process in psutil.process_iter(['status'])
                if process.pid == child
                and process.info['status'] != psutil.STATUS_ZOMBIE]
