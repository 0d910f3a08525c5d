"""The doctor checks all in turn, and ends with a code."""
import os
import subprocess
import sys

import pytest

from stepnet_mm import doctor


@pytest.mark.core
def test_what_a_user_reads(tmp_path, capsys):
    code = doctor.main(['--work-dir', str(tmp_path)])
    text = capsys.readouterr().out
    # mmpretrain prints that an optional package is not there.
    lines = [line for line in text.splitlines()
             if not line.startswith('Could not import')]
    levels = {line.split()[0] for line in lines[:-1]}
    assert levels <= {'ok', 'warning', 'error'}
    assert lines[-1].split()[0] == str(
        sum(line.startswith('ok') for line in lines))
    assert code == ('error' in levels)
    assert 'scope mmpretrain: StepResNet' in text
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
                 'it ends the process: SIGABRT', marks=pytest.mark.long)])
def test_a_library_that_does_not_import(tmp_path, library, code, why):
    (tmp_path / library).mkdir()
    (tmp_path / library / '__init__.py').write_text(code)
    text = run(tmp_path, '-m', 'stepnet_mm.doctor', '--config',
               'configs/faster_rcnn_r50_stepnet.py')
    assert f'{library} does not import ({why})' in text
    assert ('GPU' in text) == (library != 'torch')


#: Runs the doctor where some libraries are not installed: no finder has them.
WITHOUT = '''
import sys
from importlib import metadata

hidden, version = sys.argv[1].split(','), metadata.version

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] not in hidden:
            return self.finder.find_spec(name, path, target)

def version_of(name):
    if any(part in name for part in hidden):
        raise metadata.PackageNotFoundError(name)
    return version(name)

sys.meta_path[:] = map(Without, sys.meta_path)
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
