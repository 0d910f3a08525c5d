"""The commands of study.py."""
import json
import os
import signal
import sys

import pytest
from made_study import make_study, make_tools, once, recorded, runner_of

from stepnet_mm.studies import slurm_array
from stepnet_mm.utils.file_lock import file_lock


@pytest.fixture
def study(load_tool, monkeypatch, tmp_path):
    """study(action, ...): its exit code, with models left unbuilt."""
    module = load_tool('study')
    monkeypatch.setattr(module, 'check_runs', lambda *_: None)
    monkeypatch.chdir(tmp_path)

    def study(*arguments):
        monkeypatch.setattr('sys.argv', ['study.py', *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            module.main()
        return done.value.code

    study.module = module
    return study


@pytest.fixture
def tools(tmp_path, study, monkeypatch):
    folder = make_tools(tmp_path / 'repository/tools')
    monkeypatch.setattr(study.module, 'TOOLS', folder)
    return folder


@pytest.fixture(autouse=True)
def handlers():
    """Those of a terminal, as nohup ignores some; a run leaves its own."""
    before = [(n, signal.signal(n, handler)) for n, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL))]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def test_plan_run_and_status(study, tools, tmp_path, capsys):
    make_study(tmp_path, 'seconds = 3600', good={},
               fail=dict(behaviour='fail'))
    assert not study('plan', 'made.py', '--jobs', 2)
    planned = capsys.readouterr().out
    assert '2 runs, 0 records; left: 2:00:00 of single runs, 1:00:00' in (
        planned)
    assert study('run', 'made.py', '--methods', 'good') == 0
    assert study('run', 'made.py') == 1
    out = capsys.readouterr().out
    assert 'good_seed0: accuracy/top1 52' in out
    assert 'fail_seed0: failed' in out
    assert not study('status', 'made.py')
    assert '1 failed, 1 done' in capsys.readouterr().out
    runner = runner_of(tools, tmp_path)
    assert set(recorded(runner)) == {('good', 0)}
    assert not study('plan', 'made.py')
    out = capsys.readouterr().out
    assert '2 runs, 1 records' in out and 'compares with' not in out


@pytest.mark.long
def test_plan_times_the_methods_that_have_runs_left(
        study, tools, tmp_path, capsys, monkeypatch):
    make_study(tmp_path, "methods['part']['seeds'] = [0]", good={},
               part=dict(seconds=.1), slow=dict(seconds=600))
    assert study('run', 'made.py', '--methods', 'good', 'part') == 0
    make_study(tmp_path, "methods['part']['seeds'] = [0, 1]", good={},
               part=dict(seconds=.1), slow=dict(seconds=600))
    checked = []
    monkeypatch.setattr(study.module, 'check_runs',
                        lambda *args: checked.append(args))
    monkeypatch.setattr(study.module, 'threads_of_each', lambda n: 10 * n)
    monkeypatch.setenv('SLURM_JOB_ID', '1')
    capsys.readouterr()
    assert not study('plan', 'made.py', '--time', '--iterations', 5,
                     '--data-root', 'data', '--jobs', 3)
    out = capsys.readouterr().out
    assert 'slow: training 5 iterations\nslow: a training of 0:10:00' in out
    assert 'part: a training of 0:00:00' in out and 'good: a tr' not in out
    assert '4 runs, 2 records; left: 0:10:00 of single runs, 0:03:20' in out
    assert 'Timed one at a time, without what comes after' in out
    (left, root), = checked
    assert {run.name for run in left} == {'part_seed1', 'slow_seed0'}
    call, other = (tools / 'benchmarks/calls').read_text().splitlines()
    assert call == other
    assert call.startswith('--iterations 5 --data-root data ')
    assert call.endswith(' 30')  # threads; no variable of Slurm
    assert not list((tmp_path / 'work_dirs/made').glob('slow_seed?'))


def test_a_method_that_cannot_be_timed_is_named(
        study, tools, tmp_path, capsys):
    make_study(tmp_path, bad=dict(behaviour='fail'), good=dict(seconds=60))
    assert study('plan', 'made.py', '--time') == 1
    said = capsys.readouterr()
    assert 'good: a training of 0:01:00' in said.out
    assert 'left: unknown of single runs' in said.out
    assert ('methods.bad: expected a training that can be timed, got exit '
            'code 1; correct what its last lines say:\nValueError: no such '
            'step\n') in said.err


def test_a_plan_that_is_ended_leaves_no_training(study, tools, tmp_path):
    make_study(tmp_path, good=dict(behaviour='long', seconds=60))
    begun = tools / 'benchmarks/begun'
    once(begun.exists, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert study('plan', 'made.py', '--time') == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def checkpoints(folder):
    return sorted(str(path.relative_to(folder))
                  for path in folder.rglob('*.pth'))


def test_each_method_keeps_its_best_checkpoints(study, tools, tmp_path,
                                                capsys):
    make_study(tmp_path, seeds=[0, 1, 2], good={}, other={})
    assert not study('run', 'made.py', '--methods', 'good')
    path = tmp_path / 'results/made.jsonl'
    folder = tmp_path / 'work_dirs/made'
    records = [*map(json.loads, path.read_text().splitlines())]
    records[1]['last'] = 53.
    scalars, = folder.glob('good_seed1/*/vis_data/scalars.json')
    scalars.write_text(scalars.read_text().replace('52.0', '53.0'))
    path.write_text(''.join(json.dumps(line) + '\n' for line in records))
    assert not study('run', 'made.py', '--methods', 'other')
    with path.open('rb+') as file:  # without the record of one
        file.truncate(file.read()[:-1].rfind(b'\n') + 1)
    there = checkpoints(folder)
    assert len(there) == 6
    capsys.readouterr()
    with file_lock(folder / 'good_seed2/runner.lock'):
        assert not study('clean', 'made.py', '--dry-run')
        assert checkpoints(folder) == there
        assert capsys.readouterr().out == (
            'good_seed0: epoch_2.pth, 0.0 MiB\n'
            'other_seed0: epoch_2.pth, 0.0 MiB\n'
            "to delete: 2 runs' checkpoints, 0.0 MiB; each method keeps its "
            'best\n')
    assert not study('clean', 'made.py')
    assert 'deleted: 3 runs' in capsys.readouterr().out
    assert checkpoints(folder) == [
        'good_seed1/epoch_2.pth', 'other_seed1/epoch_2.pth',
        'other_seed2/epoch_2.pth']
    assert not (folder / 'good_seed0/last_checkpoint').exists()
    assert not study('clean', 'made.py')
    assert 'deleted: 0 runs' in capsys.readouterr().out


def test_checkpoints_of_another_record_stay(study, tools, tmp_path, capsys):
    make_study(tmp_path, seeds=[0, 1])
    assert not study('run', 'made.py')
    path = tmp_path / 'results/made.jsonl'
    records = [*map(json.loads, path.read_text().splitlines())]
    path.write_text(''.join(
        json.dumps({**line, 'last': 40.}) + '\n' for line in records))
    assert not study('clean', 'made.py')
    assert len(checkpoints(tmp_path)) == 2
    assert 'deleted: 0 runs' in capsys.readouterr().out


@pytest.mark.parametrize('text', [
    'open("ran", "w")', '_base_ = "its_code.py"',
    *(pytest.param(text, marks=pytest.mark.long) for text in (
        'a = open("ran", "w")', 'a = (lambda: open("ran", "w"))()',
        'custom_imports = dict(imports=["its_code"])', 'a = "{{ open }}"')),
    pytest.param('a = ' + '[' * 9999, marks=pytest.mark.long, id='deep')])
def test_nothing_in_a_work_dir_is_run(study, tools, tmp_path, text, capsys,
                                      monkeypatch):
    made = make_study(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for folder in (tmp_path, tmp_path / 'wd/configs'):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'its_code.py').write_text('open("ran", "w")')
    (tmp_path / 'wd/configs/good_seed0.py').write_text(text)
    for action in ('plan', 'status', 'run'):
        code = study(action, made.path, '--work-dir', 'wd')
        assert code or action != 'run'
    assert 'wd/configs/good_seed0.py' in capsys.readouterr().err
    assert not (tmp_path / 'ran').exists()


def test_a_failure_does_not_steer_the_terminal(study, tools, tmp_path,
                                               capsys):
    made = make_study(tmp_path)
    (tmp_path / 'wd/good_seed0').mkdir(parents=True)
    (tmp_path / 'wd/good_seed0/failed.txt').write_text('\x1b]0;title\a\x9b2J')
    study('status', made.path, '--work-dir', 'wd')
    shown = capsys.readouterr().out
    assert ']0;title' in shown and not set(shown) & set('\x1b\a\x9b')


def test_a_watch_ends_with_a_signal(study, tmp_path, monkeypatch, capsys):
    make_study(tmp_path)
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # as tools end
    monkeypatch.setattr(study.module.sys.stdout, 'isatty', lambda: True)
    monkeypatch.setattr(study.module.time, 'sleep',
                        lambda _: signal.raise_signal(signal.SIGINT))
    assert study('status', 'made.py', '--watch') == 0
    assert '1 waiting' in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize('number, code', [('SIGTERM', 143), ('SIGHUP', 129)])
def test_a_signal_stops_it(study, tools, tmp_path, number, code, capsys):
    make_study(tmp_path, good=dict(behaviour='long'))
    listens = tmp_path / 'work_dirs/made/good_seed0/listens'
    thread = once(listens.exists,
                  lambda: signal.raise_signal(signal.Signals[number]))
    assert study('run', 'made.py') == code
    thread.join()
    assert 'stopped (exit code 75)' in capsys.readouterr().out
    assert study('run', 'made.py') == 0


@pytest.mark.parametrize('arguments, message', [
    (['run', 'gone.py'], 'error: gone.py: expected a study file'),
    (['run', 'made.py', '--jobs', '0'], "--jobs: expected a positive"),
    (['status', 'made.py', '--methods', 'god'],
     "--methods: expected some of ['good'], got ['god']"),
    (['run', 'made.py', '--work-dir', 'config.py/x'], 'Not a directory'),
    (['run', 'made.py', '--slurm', 'gpu', '--trained'],
     '--trained: expected without --slurm'),
    (['report', 'made.py', '--records', 'gone.jsonl'],
     '--records: expected files of records, got gone.jsonl'),
])
def test_what_cannot_run(study, tmp_path, capsys, arguments, message):
    make_study(tmp_path)
    assert study(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
def test_slurm_gets_what_is_left(study, tools, tmp_path, monkeypatch, capsys):
    make_study(tmp_path, seeds=[0, 1, 2])
    assert study('run', 'made.py', '--methods', 'good') == 0
    make_study(tmp_path, seeds=[0, 1, 2, 3, 4])
    calls = []

    def command(*words, **environment):
        calls.append(words)
        return {'squeue': '', 'sbatch': f'{len(calls)};cluster\n'}[words[0]]

    monkeypatch.setattr(slurm_array, 'slurm_command', command)
    assert not study('run', 'made.py', '--slurm', 'gpu', '--jobs', 1,
                     '--sbatch-args', '--gres=gpu:1 --time=9', '--data-root',
                     'the data')
    assert '2 runs are array 2; job 3 measures' in capsys.readouterr().out
    _, array, after = calls
    failed = tmp_path / 'work_dirs/made/good_seed3/failed.txt'
    assert not failed.exists()
    assert {'--partition=gpu', '--array=1-2%1', '--gres=gpu:1', '--time=9',
            str(tools / 'slurm_submit.sh')} <= set(array)
    lines, = (tmp_path / 'work_dirs/made/slurm').glob('*.txt')
    assert array[-1] == f'@{lines}'
    folder = tmp_path / 'work_dirs/made'
    assert lines.read_text().splitlines()[0] == (
        f"{folder}/configs/good_seed3.py --work-dir {folder}/good_seed3 "
        f"--data-root 'the data'")
    assert '--dependency=afterany:2' in after and '--trained' in after[-1]
    make_study(tmp_path, seeds=[0, 1, 2])
    assert study('run', 'made.py', '--slurm', 'gpu') == 0
    assert len(calls) == 3
    make_study(tmp_path, seeds=[3])
    failed.parent.mkdir()
    failed.write_text('exit code 1')
    assert study('run', 'made.py', '--slurm', 'gpu') == 1
    assert 'nothing to submit: 1 failed (--retry submits them)' in (
        capsys.readouterr().out)
    assert len(calls) == 4 and failed.exists()
    assert study('run', 'made.py', '--slurm', 'gpu', '--retry') == 0
    assert len(calls) == 7 and not failed.exists()
