"""The set-up's errors; the set-up itself is what runs these tests."""
import os
import signal
import subprocess
import sys
import zipfile

import pytest
from waiting import until


def fake(folder, name, script):
    path = folder / name
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


#: An interpreter whose pip wheel waits while there is a file HOLD; it writes
#: down when it runs.
PYTHON = r'''
case "$*" in
  *ZipFile*) exec "$REAL" "$@" ;;
  *"-m pip wheel"*)
    echo "wheel $PCH_CXX $CXX" >>"$CALLS"
    while [ "$1" != -w ]; do shift; done
    while [ -e "$HOLD" ]; do sleep .05; done
    [ -z "$FAIL" ] || { echo "$FAIL"; exit 1; }
    cp "$WHEEL" "$2/mmcv.whl" ;;
  *"import os, sys, torch"*) echo torch9-cp311-cpu ;;
esac
'''


@pytest.fixture
def start(request, tmp_path):
    """A set-up whose pip, uv and compiler only pretend, in tmp_path."""
    (tmp_path / 'venv/bin').mkdir(parents=True)
    fake(tmp_path / 'venv/bin', 'python', PYTHON)
    uv = fake(tmp_path, 'uv', 'exit 0')
    with zipfile.ZipFile(tmp_path / 'made.whl', 'w') as file:
        file.writestr('mmcv.py', 'operators = 1')

    def start(**environment):
        return subprocess.Popen(
            ['bash', str(request.config.rootpath / 'tools/setup_env.sh')],
            env={**os.environ, 'TORCH': '', 'VENV': f'{tmp_path}/venv',
                 'UV': uv, 'REAL': sys.executable, 'STACK': 'onedl',
                 'CACHE': f'{tmp_path}/cache', 'CALLS': f'{tmp_path}/calls',
                 'WHEEL': f'{tmp_path}/made.whl', **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)

    return start


def said(process, code=0):
    """What a set-up says until its end."""
    text = process.communicate()[0]
    assert process.returncode == code, text
    return text


def test_a_python_that_is_too_new(start, tmp_path):
    python = fake(tmp_path, 'newer', '[ "$1" = -V ] && echo Python 3.12')
    assert said(start(STACK='classic', PYTHON=python), 1) == (
        f"setup_env: error: Python 3.12 at '{python}': expected 3.10 or "
        'later, before 3.12; set PYTHON\n')


def test_the_second_set_up_has_nothing_to_do(start, tmp_path):
    """The compiler goes behind the one with the precompiled header."""
    whole = (tmp_path / 'made.whl').read_bytes()
    made = tmp_path / 'cache/onedl-mmcv==2.3.6-torch9-cp311-cpu/mmcv.whl'
    made.parent.mkdir(parents=True)
    made.write_bytes(whole.replace(b'= 1', b'= 2'))
    text = said(start(CXX='g++ -pipe'))
    assert 'is damaged; compiling it again' in text
    assert 'is ready, after' in text and made.read_bytes() == whole
    assert said(start()) == f'setup_env: {tmp_path}/venv is ready\n'
    # Another environment takes the wheel that is there.
    (tmp_path / 'venv/.stepnet_mm_complete').unlink()
    said(start())
    call, = (tmp_path / 'calls').read_text().splitlines()
    assert call.startswith('wheel g++ -pipe ') and call.endswith(
        '/tools/pch_cxx.sh')
    assert not list((tmp_path / 'cache').glob('*building*'))


def test_another_set_up_waits_until_the_first_one_is_killed(start, tmp_path):
    first = start(HOLD=str(tmp_path))
    until((tmp_path / 'calls').exists)
    second = start()
    assert any('another set-up is at work on' in line
               for line in second.stdout)
    os.killpg(first.pid, signal.SIGKILL)
    assert first.wait()
    assert 'going on with the unfinished environment' in said(second)


@pytest.mark.long
def test_a_failed_step_says_what_to_do(start, tmp_path):
    fake(tmp_path, 'uv', 'echo no such version; exit 1')
    text = said(start(), 1)
    assert 'no such version' in text
    assert 'the last step failed; whole log:' in text
    fake(tmp_path, 'uv', 'exit 0')
    assert 'mmcv did not compile: the disk is full' in said(start(
        FAIL='OSError: [Errno 28] No space left on device'), 1)
    assert not list((tmp_path / 'cache').glob('*building*'))
    assert "no C++ compiler 'no-such-compiler'" in said(
        start(CXX='no-such-compiler'), 1)
