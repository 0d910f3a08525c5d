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
    *lines, counts = text.splitlines()
    levels = [line.split()[0] for line in lines]
    assert {*levels} <= {'ok', 'skipped', 'warning', 'error'}
    assert counts.startswith(f'{levels.count("ok")} ok; ')
    assert code == ('error' in levels)
    assert 'mmpretrain: a tiny StepResNet trains, is saved' in text


def run(folder, *command):
    """What the doctor prints in a new process, with folder on the path."""
    path = os.pathsep.join([str(folder), os.getcwd()])
    done = subprocess.run([sys.executable, *command], capture_output=True,
                          text=True, env=dict(os.environ, PYTHONPATH=path))
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    assert done.stdout.splitlines()[-1].endswith(' error')
    assert 'GPU' not in done.stdout and 'GiB free in' in done.stdout
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


#: Runs the doctor where some libraries are not installed.
WITHOUT = HIDE + '''
from importlib import metadata

hidden, owners = sys.argv[1].split(','), metadata.packages_distributions()
hide(hidden)
metadata.packages_distributions = lambda: {
    name: owners[name] for name in owners if name not in hidden}
from stepnet_mm import doctor
sys.exit(doctor.main([]))
'''


@pytest.mark.long
def test_a_machine_without_torch_and_mmengine(tmp_path):
    text = run(tmp_path, '-c', WITHOUT, 'torch,mmengine,mmcv,mmdet')
    for name in ('torch', 'mmengine', 'mmcv'):
        assert f'error    {name} is not installed' in text
    assert 'warning  mmdet is not installed' in text


@pytest.mark.parametrize('options, why', [
    (['--device', 'cuda:-1'], "cuda:1, ... or cpu, got 'cuda:-1'"),
    (['--device', ''], "cuda:1, ... or cpu, got ''"),
    (['--device', 'cpu', '--json', '/dev/null/a.json'], '--json: ')])
def test_options_are_refused_at_once(options, why, capsys):
    with pytest.raises(SystemExit):
        doctor.main(options)
    printed = capsys.readouterr()
    assert why in printed.err and not printed.out


def whole(device, path):
    """The code, and the content of the file."""
    code = doctor.main(
        ['--device', device, '--json', str(path), '--seconds', '900'])
    return code, json.loads(path.read_text())


@pytest.mark.long
def test_a_machine_without_a_gpu(tmp_path):
    code, found = whole('cuda', tmp_path / 'found.json')
    assert code == found['counts']['error'] == 1
    assert found['rows'][-1]['check'] == 'device'
    assert 'device: no GPU that torch ' in found['rows'][-2]['text']


@pytest.mark.long
def test_the_whole_on_a_cpu(tmp_path):
    code, found = whole('cpu', tmp_path / 'found.json')
    assert code == 0, found['rows']
    assert [*dict.fromkeys(row.get('check') for row in found['rows'])] == [
        None, 'device', *(check.rpartition(':')[2]
                          for check in doctor.__main__.DEVICE)]
    assert found['versions']['torch'] and found['commit'] and found['finished']
    plain, fused, unfused, verdict = (
        row for row in found['rows'] if row.get('check') == 'cost')
    assert plain['of_plain'] == 1 and len(plain['seconds_of_rounds']) == 9
    # The fused tail keeps no f.
    assert fused['saved_megabytes'] < unfused['saved_megabytes']
    assert 'the fused tail takes' in verdict['text']


@pytest.mark.gpu
def test_the_whole_on_a_gpu(tmp_path):
    code, found = whole('cuda', tmp_path / 'found.json')
    assert code == 0, found['rows']
    assert 'GPU models' in str(found['environment'])
