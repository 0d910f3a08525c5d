"""The doctor checks all in turn, and ends with a code."""
import json
import os
import subprocess
import sys
from types import SimpleNamespace

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
    assert f'error    import {library}: {why}: ' in done.stdout
    assert 'trains' not in done.stdout and 'GiB free in' in done.stdout


def test_the_rows_so_far_are_in_the_file(tmp_path, monkeypatch):
    def run(name, check, argument, device, seconds, left):
        if name == 'operators':
            raise KeyboardInterrupt
        return [MAIN.process.row('ok', f'{name}: {seconds} of {left}')]

    clock = iter(range(0, 999, 90))
    monkeypatch.setattr(MAIN.process, 'run', run)
    monkeypatch.setattr(
        MAIN, 'time', SimpleNamespace(monotonic=clock.__next__))
    path = tmp_path / 'new' / 'found.json'
    with pytest.raises(KeyboardInterrupt):
        doctor.main(['--json', str(path)])
    found = json.loads(path.read_text())
    assert [row['text'] for row in found['rows'][-2:]] == [
        'device: 150.0 of 210', 'resume: 150.0 of 120']
    assert found['counts']['ok'] >= 2 and not found['finished']


@pytest.mark.parametrize('device', [
    pytest.param('cpu', marks=pytest.mark.long),
    pytest.param('cuda', marks=pytest.mark.gpu)])
def test_the_whole(device, tmp_path):
    path = tmp_path / 'found.json'
    code = doctor.main(
        ['--device', device, '--json', str(path), '--seconds', '900'])
    found = json.loads(path.read_text())
    assert code == 0 and found['finished'], found['rows']
    names = {row['text'].partition(':')[0] for row in found['rows']}
    assert {check.rpartition(':')[2] for check in MAIN.DEVICE} < names
    about, = [row for row in found['rows'] if 'environment' in row]
    assert about['versions']['torch'] and about['commit']
    *_, fused, unfused = [
        row for row in found['rows'] if 'seconds_of_rounds' in row]
    assert len(fused['seconds_of_rounds']) == 9
    # The fused tail keeps no f.
    assert fused['saved_megabytes'] < unfused['saved_megabytes']
