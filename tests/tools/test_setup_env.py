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
    echo "  [1/2] c++ a.cpp"
    while [ -e "$HOLD" ]; do sleep .05; done
    [ -z "$FAIL" ] || { echo "$FAIL"; exit 1; }
    cp "$WHEEL" "$2/mmcv.whl" ;;
  *"import os, sys, torch"*) echo torch9-cp311-cpu ;;
esac
'''


class SetUp:
    """A set-up whose pip, uv and compiler only pretend."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        (folder / 'venv/bin').mkdir(parents=True)
        fake(folder / 'venv/bin', 'python', PYTHON)
        self.uv = fake(folder, 'uv', 'exit 0')
        self.wheels = folder / 'cache/onedl-mmcv==2.3.6-torch9-cp311-cpu'
        self.wheel = folder / 'made.whl'
        with zipfile.ZipFile(self.wheel, 'w') as file:
            file.writestr('mmcv.py', 'operators = 1')

    def start(self, **environment):
        return subprocess.Popen(
            ['bash', str(self.root / 'tools/setup_env.sh')],
            env={**os.environ, 'TORCH': '', 'VENV': str(self.folder / 'venv'),
                 'UV': self.uv, 'CACHE': str(self.folder / 'cache'),
                 'STACK': 'onedl', 'CALLS': str(self.folder / 'calls'),
                 'REAL': sys.executable, 'WHEEL': str(self.wheel),
                 **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)

    def run(self, code=0, **environment):
        process = self.start(**environment)
        text = process.communicate()[0]
        assert process.returncode == code, text
        return text

    def wait_for_a_compilation(self):
        end = time.monotonic() + 60
        while not (self.folder / 'calls').exists():
            assert time.monotonic() < end
            time.sleep(.02)

    def left_over(self):
        return list((self.folder / 'cache').glob('*building*'))


@pytest.fixture
def set_up(request, tmp_path):
    return SetUp(request.config.rootpath, tmp_path)


def test_the_second_set_up_has_nothing_to_do(set_up):
    """The compiler goes behind the one with the precompiled header."""
    text = set_up.run(CXX='g++ -pipe')
    assert 'compiling mmcv [1/2]' in text
    assert 'is ready, after' in text
    assert set_up.run() == f'setup_env: {set_up.folder}/venv is ready\n'
    assert (set_up.folder / 'calls').read_text() == (
        f'wheel g++ -pipe {set_up.root}/tools/pch_cxx.sh\n')
    assert set_up.left_over() == []


@pytest.mark.long
def test_another_set_up_at_the_same_time_waits(set_up):
    hold = set_up.folder / 'hold'
    hold.touch()
    first = set_up.start(HOLD=str(hold))
    set_up.wait_for_a_compilation()
    second = set_up.start()
    assert any('another set-up is at work on' in line
               for line in second.stdout)
    hold.unlink()
    assert second.communicate()[0].endswith('venv is ready\n')
    assert first.wait() == second.wait() == 0
    assert (set_up.folder / 'calls').read_text().count('wheel') == 1


def test_a_killed_set_up_goes_on(set_up):
    process = set_up.start(HOLD=str(set_up.folder))
    set_up.wait_for_a_compilation()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() != 0
    assert not set_up.wheels.exists()
    text = set_up.run()
    assert 'going on with the unfinished environment' in text
    assert 'is ready, after' in text
    assert set_up.left_over() == []


@pytest.mark.long
def test_a_failed_step_says_what_to_do(set_up):
    fake(set_up.folder, 'uv', 'echo no such version; exit 1')
    text = set_up.run(1)
    assert 'no such version' in text
    assert 'the last step failed; whole log:' in text
    fake(set_up.folder, 'uv', 'exit 0')
    text = set_up.run(1, FAIL='OSError: [Errno 28] No space left on device')
    assert 'mmcv did not compile: the disk is full' in text
    assert set_up.left_over() == []
    assert "no C++ compiler 'no-such-compiler'" in set_up.run(
        1, CXX='no-such-compiler')


def test_a_damaged_wheel_is_made_again_and_a_whole_one_is_taken(set_up):
    whole = set_up.wheel.read_bytes()
    set_up.wheels.mkdir(parents=True)
    path = set_up.wheels / 'mmcv.whl'
    path.write_bytes(whole.replace(b'= 1', b'= 2'))
    assert 'is damaged; compiling it again' in set_up.run()
    assert path.read_bytes() == whole
    (set_up.folder / 'venv/.stepnet_mm_complete').unlink()
    (set_up.folder / 'calls').unlink()
    set_up.run()
    assert not (set_up.folder / 'calls').exists()
