"""The doctor checks all in turn, and ends with a code."""
import json
import os
import subprocess
import sys

import pytest

from stepnet_mm import doctor

MAIN = doctor.__main__


@pytest.mark.core
@pytest.mark.long
def test_what_a_user_reads(tmp_path, capsys):
    code = doctor.main(['--work-dir', str(tmp_path)])
    text = capsys.readouterr().out
    *lines, counts = text.splitlines()
    levels = [line.split()[0] for line in lines]
    assert {*levels} <= {'ok', 'skipped', 'warning', 'error'}
    assert counts.startswith(f'{levels.count("ok")} ok; ')
    assert code == ('error' in levels)
    assert 'mmpretrain: a tiny StepResNet trains, is saved' in text
    assert f'GiB free in {tmp_path}' in text


@pytest.mark.parametrize('library, code, why', [
    ('torch', 'raise RuntimeError("boom")', 'RuntimeError: boom'),
    pytest.param('mmcv', 'import os; os.abort()',
                 'ended by SIGABRT', marks=pytest.mark.long)])
def test_a_library_that_does_not_import(tmp_path, library, code, why):
    (tmp_path / library).mkdir()
    (tmp_path / library / '__init__.py').write_text(code)
    done = subprocess.run(
        [sys.executable, '-m', 'stepnet_mm.doctor'], capture_output=True,
        text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(
            [str(tmp_path), os.getcwd()])))
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr
    assert f'error    import {library}: {why}: ' in done.stdout
    assert 'trains' not in done.stdout and 'GiB free in' in done.stdout


@pytest.mark.parametrize('options', [
    ['--device', 'tpu'], ['--json', '/dev/null/a.json']])
def test_options_are_refused_at_once(options, capsys):
    with pytest.raises(SystemExit):
        doctor.main(options)
    printed = capsys.readouterr()
    assert f'{options[0]}: ' in printed.err and not printed.out


def test_the_rows_so_far_are_in_the_file(tmp_path, monkeypatch):
    def run(name, *_):
        if name == 'operators':
            raise KeyboardInterrupt
        yield MAIN.process.row('ok', f'{name}: fine')

    monkeypatch.setattr(MAIN.process, 'run', run)
    path = tmp_path / 'new' / 'found.json'
    with pytest.raises(KeyboardInterrupt):
        doctor.main(['--json', str(path)])
    found = json.loads(path.read_text())
    assert [row['text'] for row in found['rows'][-2:]] == [
        'device: fine', 'resume: fine']
    assert found['counts']['ok'] >= 2 and not found['finished']


def test_checks_after_the_time_are_not_begun(capsys):
    doctor.main(['--device', 'cpu', '--seconds', '1'])
    assert 'cost: not checked, the time is over: ' in capsys.readouterr().out


def whole(device, path):
    """The code, and the content of the file."""
    code = doctor.main(
        ['--device', device, '--json', str(path), '--seconds', '900'])
    return code, json.loads(path.read_text())


@pytest.mark.long
def test_the_whole_on_a_cpu(tmp_path):
    code, found = whole('cpu', tmp_path / 'found.json')
    assert code == 0 and found['finished'], found['rows']
    names = {row['text'].partition(':')[0] for row in found['rows']}
    assert {check.rpartition(':')[2] for check in MAIN.DEVICE} < names
    device, = [row for row in found['rows'] if 'environment' in row]
    assert device['versions']['torch'] and device['commit']
    *_, fused, unfused = [
        row for row in found['rows'] if 'seconds_of_rounds' in row]
    assert len(fused['seconds_of_rounds']) == 9
    # The fused tail keeps no f.
    assert fused['saved_megabytes'] < unfused['saved_megabytes']


@pytest.mark.gpu
def test_the_whole_on_a_gpu(tmp_path):
    code, found = whole('cuda', tmp_path / 'found.json')
    assert code == 0, found['rows']
    assert 'GPU models' in str(found['rows'])
