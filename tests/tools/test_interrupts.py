"""Ctrl-C ends every command with one line and, in a shell, with 130."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def interrupted(command, folder, files, **environment):
    """Exit code and lines on stderr of what is interrupted once it began."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT), **environment},
        start_new_session=True, cwd=folder,
        # What runs in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    end = time.monotonic() + 60
    while not all((folder / file).exists() for file in files):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(.02)
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    return process.returncode, error.splitlines()


def test_every_tool_listens_before_anything_else():
    tools = [path for path in (ROOT / 'tools').rglob('*.py')
             if "__name__ == '__main__'" in path.read_text()]
    assert tools
    for tool in tools:
        first = next(line for line in tool.read_text()
                     .partition('"""\n')[2].splitlines() if line)
        assert first.startswith('import stepnet_mm.utils.interrupts'), tool


PROGRAM = '''
import stepnet_mm.utils.interrupts
import atexit, os, pathlib, time
atexit.register(lambda: pathlib.Path('left').write_text(''))
pid = {fork}
pathlib.Path('begun').touch()
while True:
    try:
        time.sleep(60)
    except BaseException:  # as some libraries have it
        pass
'''
FORK = ('__import__("multiprocessing").get_context("fork")'
        '.Process(target=time.sleep, args=(60, ), daemon=True).start()')
#: Python drops signals that reach a child before fork() returns in it.
RAW_FORK = '__import__("os").fork() or pathlib.Path("child").touch()'


@pytest.mark.parametrize('rank, fork, files', [
    (0, FORK, ['begun']), (1, RAW_FORK, ['begun', 'child'])])
def test_nothing_swallows_it_and_the_first_rank_alone_says_so(
        tmp_path, rank, fork, files):
    path = tmp_path / 'tool.py'
    path.write_text(PROGRAM.format(fork=fork))
    code, lines = interrupted([sys.executable, path], tmp_path, files,
                              RANK=str(rank))
    assert code == -signal.SIGINT  # which a shell calls 130
    assert lines == ['tool.py: interrupted'] * (rank == 0)
    assert (tmp_path / 'left').exists()


@pytest.mark.parametrize('script', ['setup_env', 'demo'])
def test_a_script_that_waits_for_others(tmp_path, script):
    """Its own trap, with a command that takes long."""
    trap, = [line for line in (ROOT / f'tools/{script}.sh').read_text()
             .splitlines() if line.startswith('trap') and 'INT' in line]
    say = """say() { printf 'setup_env: %s\\n' "$*"; }"""
    code, lines = interrupted(
        ['bash', '-c', f'{say}\n{trap}\ntouch begun\nsleep 60\n'], tmp_path,
        ['begun'])
    assert (code, lines) == (-signal.SIGINT, [f'{script}: interrupted'])
