"""Ctrl-C ends every command with one line and, in a shell, with 130."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

ROOT = Path(__file__).resolve().parents[2]


def test_every_tool_listens_before_anything_else():
    tools = [path for path in (ROOT / 'tools').rglob('*.py')
             if "__name__ == '__main__'" in path.read_text()]
    assert tools
    for tool in tools:
        _, _, code = tool.read_text().partition('"""\n')
        assert code.lstrip().startswith(
            'import stepnet_mm.utils.interrupts'), tool


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
    process = subprocess.Popen(
        [sys.executable, path], stderr=subprocess.PIPE, text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT), 'RANK': str(rank)},
        start_new_session=True, cwd=tmp_path,
        # What runs in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    until(lambda: all((tmp_path / file).exists() for file in files))
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGINT  # which a shell calls 130
    assert error.splitlines() == ['tool.py: interrupted'] * (rank == 0)
    assert (tmp_path / 'left').exists()


@pytest.mark.parametrize('arguments, error, lines', [
    ([], "ValueError('lr: expected a number, got x; change it')", 1),
    (['--traceback'], "ValueError('lr: expected a number, got x')", 4),
    ([], "FileNotFoundError(2, 'No such file', 'x.json')", 1),
    ([], "ValueError('not enough values to unpack')", 4),
    ([], "RuntimeError('lr: expected a number, got x')", 4)])
def test_a_mistake_ends_in_its_line(tmp_path, arguments, error, lines):
    path = tmp_path / 'tool.py'
    path.write_text(
        f'import stepnet_mm.utils.interrupts, sys\n'
        f'assert len(sys.argv) == 1\nraise {error}\n')
    done = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': str(ROOT)})
    said = done.stderr.splitlines()
    assert done.returncode == 1 and len(said) == lines
    assert lines > 1 or said[0].startswith('tool.py: error: ') and (
        'x.json' in said[0] or 'expected a number, got x; change' in said[0])
