"""The set-up's errors; the set-up itself is what runs these tests."""
import os
import signal
import subprocess
import sys
import time
import zipfile

import pytest


def fake(folder, name, script):
    path = folder / name
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


def test_a_python_that_is_too_new(request, tmp_path):
    python = fake(tmp_path, 'python', """case "$*" in
  -V) echo Python 3.12 ;;
  *) exit 1 ;;
esac""")
    done = subprocess.run(
        ['bash', request.config.rootpath / 'tools/setup_env.sh'],
        env=dict(PATH='/usr/bin:/bin', HOME='/nonexistent', STACK='classic',
                 PYTHON=python), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1, f"setup_env: error: Python 3.12 at '{python}': expected 3.10 or "
        'later, before 3.12; set PYTHON\n')


#: An interpreter whose pip wheel waits while there is a file HOLD; it writes
#: down when it runs.
PYTHON = r'''
case "$*" in
  *ZipFile* | *compileall*) exec "$REAL" "$@" ;;
  *"-m pip wheel"*)
    echo "wheel $PCH_CXX $CXX" >>"$CALLS"
    while [ "$1" != -w ]; do shift; done
    while [ -e "$HOLD" ]; do sleep .05; done
    [ -z "$FAIL" ] || { echo "$FAIL"; exit 1; }
    cp "$WHEEL" "$2/mmcv.whl" ;;
  *"import os, sys, torch"*) echo torch9-cp311-cpu ;;
esac
'''


class SetUp:
    """A set-up whose pip, uv and compiler only pretend."""

    def __init__(self, root, folder):
        self.script, self.folder = root / 'tools/setup_env.sh', folder
        (folder / 'venv/bin').mkdir(parents=True)
        fake(folder / 'venv/bin', 'python', PYTHON)
        fake(folder, 'uv', 'exit 0')
        self.calls = folder / 'calls'
        self.wheels = folder / 'cache/onedl-mmcv==2.3.6-torch9-cp311-cpu'
        self.wheel = folder / 'made.whl'
        with zipfile.ZipFile(self.wheel, 'w') as file:
            file.writestr('mmcv.py', 'operators = 1')

    def start(self, **environment):
        return subprocess.Popen(
            ['bash', str(self.script)],
            env={**os.environ, 'TORCH': '', 'VENV': str(self.folder / 'venv'),
                 'UV': str(self.folder / 'uv'), 'REAL': sys.executable,
                 'CACHE': str(self.folder / 'cache'), 'STACK': 'onedl',
                 'CALLS': str(self.calls), 'WHEEL': str(self.wheel),
                 **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)

    def run(self, code=0, **environment):
        process = self.start(**environment)
        text = process.communicate()[0]
        assert process.returncode == code, text
        assert not list((self.folder / 'cache').glob('*building*'))
        return text


@pytest.fixture
def set_up(request, tmp_path):
    return SetUp(request.config.rootpath, tmp_path)


def test_the_second_set_up_has_nothing_to_do(set_up):
    """The compiler goes behind the one with the precompiled header."""
    whole = set_up.wheel.read_bytes()
    set_up.wheels.mkdir(parents=True)
    made = set_up.wheels / 'mmcv.whl'
    made.write_bytes(whole.replace(b'= 1', b'= 2'))
    text = set_up.run(CXX='g++ -pipe')
    assert 'is damaged; compiling it again' in text
    assert 'is ready, after' in text and made.read_bytes() == whole
    assert set_up.run() == f'setup_env: {set_up.folder}/venv is ready\n'
    # Another environment takes the wheel that is there.
    (set_up.folder / 'venv/.stepnet_mm_complete').unlink()
    set_up.run()
    assert set_up.calls.read_text() == (
        f'wheel g++ -pipe {set_up.script.with_name("pch_cxx.sh")}\n')


def test_another_set_up_waits_until_the_first_one_is_killed(set_up):
    first = set_up.start(HOLD=str(set_up.folder))
    while not set_up.calls.exists():
        time.sleep(.02)
    second = set_up.start()
    assert any('another set-up is at work on' in line
               for line in second.stdout)
    os.killpg(first.pid, signal.SIGKILL)
    text = second.communicate()[0]
    assert first.wait() and second.wait() == 0
    assert 'going on with the unfinished environment' in text
    assert 'is ready, after' in text


@pytest.mark.long
def test_a_failed_step_says_what_to_do(set_up):
    fake(set_up.folder, 'uv', 'echo no such version; exit 1')
    text = set_up.run(1)
    assert 'no such version' in text
    assert 'the last step failed; whole log:' in text
    fake(set_up.folder, 'uv', 'exit 0')
    text = set_up.run(1, FAIL='OSError: [Errno 28] No space left on device')
    assert 'mmcv did not compile: the disk is full' in text
    assert "no C++ compiler 'no-such-compiler'" in set_up.run(
        1, CXX='no-such-compiler')
