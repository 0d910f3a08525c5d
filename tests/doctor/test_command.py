"""The doctor checks all in turn, and ends with a code."""
import json
import os
import subprocess
import sys

import pytest
from hidden import HIDE

from stepnet_mm import doctor


@pytest.mark.core
def test_what_a_user_reads(tmp_path, capsys):
    code = doctor.main(['--work-dir', str(tmp_path)])
    text = capsys.readouterr().out
    lines = text.splitlines()
    levels = {line.split()[0] for line in lines[:-1]}
    assert levels <= {'ok', 'skipped', 'warning', 'error'}
    assert lines[-1].split()[0] == str(
        sum(line.startswith('ok') for line in lines))
    assert code == ('error' in levels)
    assert 'mmpretrain: a tiny StepResNet trains, is saved' in text


def run(folder, *command):
    """In a process of its own, as a user does; folder is on the path."""
    path = os.pathsep.join([str(folder), os.getcwd()])
    done = subprocess.run([sys.executable, *command], capture_output=True,
                          text=True, env=dict(os.environ, PYTHONPATH=path))
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    assert done.stdout.splitlines()[-1].endswith(' error')
    return done.stdout


@pytest.mark.parametrize('library, code, why', [
    ('torch', 'raise RuntimeError("boom")', 'RuntimeError: boom'),
    pytest.param('mmcv', 'import os; os.abort()',
                 'ended by SIGABRT', marks=pytest.mark.long)])
def test_a_library_that_does_not_import(tmp_path, library, code, why):
    (tmp_path / library).mkdir()
    (tmp_path / library / '__init__.py').write_text(code)
    text = run(tmp_path, '-m', 'stepnet_mm.doctor', '--config',
               'configs/faster_rcnn_r50_stepnet.py')
    assert f'error    import {library}: {why}: ' in text
    assert 'GPU' not in text and 'GiB free in' in text


#: Runs the doctor where some libraries are not installed.
WITHOUT = HIDE + '''
from importlib import metadata

hidden, version = sys.argv[1].split(','), metadata.version

def version_of(name):
    if any(part in name for part in hidden):
        raise metadata.PackageNotFoundError(name)
    return version(name)

hide(hidden)
metadata.version = version_of
from stepnet_mm import doctor
sys.exit(doctor.main([]))
'''


@pytest.mark.long
def test_a_machine_without_torch_and_mmengine(tmp_path):
    text = run(tmp_path, '-c', WITHOUT, 'torch,mmengine,mmcv,mmdet')
    for name in ('torch', 'mmengine', 'mmcv'):
        assert f'error    {name} is not installed' in text
    assert 'warning  mmdet is not installed' in text
    assert 'GPU' not in text and 'GiB free in' in text


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path, capsys):
    (tmp_path / 'file').touch()
    with pytest.raises(SystemExit):
        doctor.main(['--device', 'cpu', '--json', f'{tmp_path}/file/a.json'])
    assert not capsys.readouterr().out


@pytest.mark.parametrize('device', ['cuda:-1', 'gpu', ''])
def test_a_device_that_is_none(device, capsys):
    with pytest.raises(SystemExit):
        doctor.main(['--device', device])
    assert f'cuda:1, ... or cpu, got {device!r}' in capsys.readouterr().err


@pytest.mark.long
def test_a_machine_without_a_gpu(tmp_path, capsys):
    path = tmp_path / 'found.json'
    assert doctor.main(['--device', 'cuda', '--json', str(path)]) == 1
    text = capsys.readouterr().out
    assert 'error    device: no GPU that torch ' in text
    assert 'kernels' not in text
    found = json.loads(path.read_text())
    assert found['counts']['error'] == 1
    assert found['rows'][-1]['check'] == 'device'


def whole(device, path):
    """The code and what is on file."""
    code = doctor.main(
        ['--device', device, '--json', str(path), '--seconds', '900'])
    return code, json.loads(path.read_text())


@pytest.mark.long
def test_the_whole_on_a_cpu(tmp_path):
    code, found = whole('cpu', tmp_path / 'found.json')
    assert code == 0, found['rows']
    assert [*dict.fromkeys(row.get('check') for row in found['rows'])] == [
        None, 'device', *(check.rpartition(':')[2]
                          for check in doctor.__main__.DEVICE)]
    assert found['versions']['torch'] and found['commit']
    assert 'fused tail' in str(found['rows']) and found['finished']


@pytest.mark.gpu
def test_the_whole_on_a_gpu(tmp_path):
    code, found = whole('cuda', tmp_path / 'found.json')
    assert code == 0, found['rows']
    assert 'GPU models' in str(found['environment'])
