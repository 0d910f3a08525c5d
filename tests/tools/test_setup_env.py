"""The set-up's errors; the set-up itself is what runs these tests."""
import subprocess

import pytest

pytestmark = pytest.mark.core


def setup(request, **environment):
    return subprocess.run(
        ['bash', str(request.config.rootpath / 'tools/setup_env.sh')],
        env=dict(PATH='/usr/bin:/bin', HOME='/nonexistent', **environment),
        capture_output=True,
        text=True)


def only_line(result):
    assert result.returncode == 1
    line, = result.stderr.splitlines()
    assert line.startswith('setup_env: error: ')
    return line


def test_unknown_stack(request):
    line = only_line(setup(request, STACK='conda'))
    assert 'STACK=conda: expected onedl or openmmlab' in line


def test_no_interpreter(request):
    line = only_line(setup(request, PYTHON='python0'))
    assert "no interpreter 'python0'; set PYTHON" in line


def fake(folder, name, script):
    path = folder / name
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


def test_unsupported_python(request, tmp_path):
    python = fake(
        tmp_path, 'python',
        '[ "$1" = -V ] && echo Python 3.8.1 && exit 0; exit 1')
    line = only_line(setup(request, PYTHON=python))
    assert 'Python 3.8.1' in line and 'expected 3.10, 3.11 or 3.12' in line


def test_broken_environment(request, tmp_path):
    (tmp_path / 'bin').mkdir()
    fake(tmp_path / 'bin', 'python', 'exit 1')
    line = only_line(setup(request, VENV=str(tmp_path)))
    assert 'is broken' in line and f"rm -rf '{tmp_path}'" in line


def test_uv_that_does_not_exist(request, tmp_path):
    (tmp_path / 'bin').mkdir()
    fake(tmp_path / 'bin', 'python', 'exit 0')
    line = only_line(setup(request, VENV=str(tmp_path), UV='/no/such/uv'))
    assert 'UV=/no/such/uv does not exist' in line


def test_missing_compiler(request, tmp_path):
    (tmp_path / 'venv' / 'bin').mkdir(parents=True)
    fake(tmp_path / 'venv' / 'bin', 'python', 'exit 0')
    fake(tmp_path / 'venv' / 'bin', 'uv', 'exit 0')
    line = only_line(
        setup(
            request,
            VENV=str(tmp_path / 'venv'),
            UV=str(tmp_path / 'venv' / 'bin' / 'uv'),
            CXX='no-such-compiler'))
    assert "no C++ compiler 'no-such-compiler'" in line
    assert 'apt-get install g++' in line
