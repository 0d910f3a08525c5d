"""The steps of a study's runs, in this process, with made tools."""
import os
import re
import signal
import time
from types import SimpleNamespace

import by_path
import pytest
from forked import Forked
from made_study import make_study, make_tools, starts_of
from study_file import begun_config, runs_of
from study_outcome import times_of
from study_records import read_records

from stepnet_mm.utils.file_lock import TRAINING_LOCK, file_lock, lock_beside


@pytest.fixture
def engine(request, tools, tmp_path, monkeypatch, capsys):
    """engine('loop', a=dict(...)): the end of a step of a study of these."""
    module = by_path.load(
        request.config.rootpath / 'tools/studies/run.py')
    monkeypatch.setattr(module, 'TOOLS', tools)
    monkeypatch.chdir(tmp_path)
    before = [(number, signal.getsignal(number)) for number in (
        signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    def engine(step, *options, text='', seeds=(0, ), **methods):
        made = make_study(tmp_path, text, seeds, **methods)
        monkeypatch.setattr('sys.argv', [
            'run.py', 'made.py', step, *map(str, options)])
        module.STOPS.clear()
        with pytest.raises(SystemExit) as done:
            module.main()
        out, err = capsys.readouterr()
        return SimpleNamespace(
            runs=runs_of(made, tmp_path / 'work_dirs/made'), out=out, err=err,
            code=done.value.code, records={
                record.key: record
                for record in read_records('results/made.jsonl')})

    engine.module = module
    yield engine
    for number, handler in before:
        signal.signal(number, handler)


def behave(*names):
    """Methods that behave like this: spaces become _."""
    return {name.replace(' ', '_'): dict(behaviour=name) for name in names}


def test_runs_are_trained_measured_and_recorded_once(engine):
    study = dict(seeds=[0, 1], text="measure = dict(definitions=["
                 "'residual', 'output'])")
    assert engine('list', **study).out == (
        'good_seed0: not begun\ngood_seed1: not begun\n')
    first = engine('loop', **study)
    assert first.code == 0 and 'good_seed0: accuracy/top1 52' in first.out
    assert set(first.records) == {('good', 0), ('good', 1)}
    record = first.records['good', 0]
    assert (record.last, record.best) == (52., 52.)
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert set(record.stiffness) == {'residual', 'output'}
    assert record.wall_seconds > 0 and record.cpu_seconds > 0
    assert (record.commit, record.device, record.machine) == (
        'abc', 'A GPU', 'A processor, 3 threads')
    assert engine('list', **study).out == ''
    assert engine('loop', **study).records == first.records
    for run in first.runs:
        assert len(starts_of(run)) == 1
        assert len(starts_of(run, 'measure')) == 2


def test_a_failure_keeps_its_last_lines_and_stops_no_other(engine):
    done = engine('loop', **behave('fail', 'full disk', 'good'))
    assert done.code == 1 and set(done.records) == {('good', 0)}
    bad, full, _ = done.runs
    log = bad.log.relative_to(os.getcwd())
    assert done.err.splitlines()[:16] == [
        f'fail_seed0: train failed: exit code 3, {log}',
        *(f'line {n}' for n in range(25, 40))]
    assert '[Errno 28] No space left on device' in done.err
    assert engine('train', '--run', bad.name,
                  **behave('fail', 'good')).code == 1
    assert len(starts_of(bad)) == 2
    for code, text in ((-9, 'SIGKILL'), (3, 'exit code 3')):
        assert engine.module.described(code) == text


def test_what_a_tool_prints_does_not_steer_the_terminal(engine):
    engine.module.LAST_LINES = 1
    done = engine('loop', **behave('steer'))
    assert ']0;title' in done.err and not set(done.err) & set('\x1b\a\x9b')


def test_a_divergence_is_recorded(engine):
    done = engine('loop', **behave('diverge'))
    record, = done.records.values()
    assert record.diverged and record.last is None and not record.stiffness
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert (done.code, 'diverge_seed0: diverged' in done.out) == (0, True)
    os.unlink('results/made.jsonl')
    listed = engine('list', **behave('diverge')).out
    assert listed == 'diverge_seed0: trained\n'
    engine('loop', **behave('diverge'))  # it is not trained again for that
    assert len(starts_of(done.runs[0])) == 1


def test_runs_without_a_result_fail_and_are_not_measured(engine):
    done = engine('loop', **behave('crash', 'silent', 'not finite', 'skip'))
    assert done.code == 1
    # That a loss was skipped is no divergence.
    assert set(done.records) == {('skip', 0)}
    for run, reason in zip(done.runs, ('SIGSEGV', 'got none', 'got None')):
        assert re.search(f'{run.name}: .*{reason}', done.err)
        assert not starts_of(run, 'measure')


def test_a_metric_that_nothing_gives(engine):
    done = engine('loop', text="metric = 'accuracy/top5'")
    assert done.code == 1
    assert ("good_seed0: record failed: made.py: metric: expected one of "
            "['accuracy/top1'], got 'accuracy/top5'") in done.err
    assert not starts_of(done.runs[0], 'measure')


def test_what_would_not_compare_is_refused_before_anything_runs(engine):
    engine('loop', a={})
    for key, text, methods in (
            (r"a_seed0: expected config .*seconds: 'not there' -> 1", '',
             dict(a=dict(seconds=1))),
            ('b_seed0: expected settings', 'measure = dict(num_samples=3)',
             dict(b={})),
            ('b_seed0: expected test_data', '',
             dict(b={'val_dataloader.dataset.ann_file': 'x'})),
            ('log_metric_by_epoch: expected False', '',
             dict(b={'train_cfg.max_iters': 9})),
            ('val_dataloader', '', dict(b={'val_dataloader': None}))):
        for step in 'list', 'loop':
            done = engine(step, text=text, **methods)
            assert done.code == 2 and re.search(key, done.err)
            assert len(starts_of(done.runs[0])) == ('a' in methods)
    os.unlink('results/made.jsonl')
    done = engine('list', c={}, a=dict(seconds=1))
    assert done.code == 2 and re.search(
        "begun with, .*'not there' -> 1.*take back", done.err)


@pytest.mark.parametrize('options, message', [
    (('--methods', 'god'), "methods: expected some of ['good'], got ['god']"),
    (('--run', 'god'), "run: expected some of ['good_seed0'], got ['god']"),
    (('--work-dir', 'config.py/x'), 'Not a directory')])
def test_what_cannot_run(engine, options, message):
    done = engine('train' if '--run' in options else 'loop', *options)
    assert done.code and message in done.err


@pytest.mark.parametrize('text', [
    'open("ran", "w")', '_base_ = "its_code.py"',
    *(pytest.param(text, marks=pytest.mark.long) for text in (
        'a = open("ran", "w")', 'a = (lambda: open("ran", "w"))()',
        'custom_imports = dict(imports=["its_code"])', 'a = "{{ open }}"')),
    pytest.param('a = ' + '[' * 9999, marks=pytest.mark.long, id='deep')])
def test_nothing_in_a_work_dir_is_run(engine, tmp_path, text, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for folder in (tmp_path, tmp_path / 'wd/configs'):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'its_code.py').write_text('open("ran", "w")')
    (tmp_path / 'wd/configs/good_seed0.py').write_text(text)
    for step in 'list', 'loop':
        done = engine(step, '--work-dir', 'wd')
        assert done.code == 2 and 'wd/configs/good_seed0.py' in done.err
    assert not (tmp_path / 'ran').exists()


def test_a_config_of_a_work_dir_is_read_as_data(make_runs):
    run, = make_runs(good={'model.keys': {'.step.': dict(a=(1, [2.5, None])),
                                          'b-c': [dict(d=-1)]}})
    cfg = run.write_config()
    assert begun_config(run.config_file).to_dict() == cfg.to_dict()
    text = run.config_file.read_text()
    run.config_file.write_text(f'# as another yapf has it\n{text}')
    run.write_config()
    assert run.config_file.read_text() == text


def test_a_log_is_not_written_through_a_link(engine, tmp_path):
    log = tmp_path / 'work_dirs/made/good_seed0/output.log'
    log.parent.mkdir(parents=True)
    (tmp_path / 'mine').write_text('text')
    log.symlink_to(tmp_path / 'mine')
    done = engine('loop')
    assert done.code == 1 and 'output.log: expected a log' in done.err
    assert (tmp_path / 'mine').read_text() == 'text'
    assert not starts_of(done.runs[0])


def test_a_full_disk_loses_nothing(engine, monkeypatch):

    def full(*_):
        raise OSError(28, 'No space left on device')

    for name in 'append_record', 'add_times':
        with monkeypatch.context() as patch:
            patch.setattr(engine.module, name, full)
            done = engine('loop')
        assert (done.code, done.records) == (1, {})
        assert 'good_seed0: record failed: [Errno 28] No space' in done.err
    done = engine('loop')
    assert set(done.records) == {('good', 0)}
    assert len(starts_of(done.runs[0])) == 1


def test_a_signal_stops_it_and_the_next_call_goes_on(engine, monkeypatch):
    study = dict(seeds=[0, 1], good=dict(behaviour='long'))
    module = engine.module
    wait = os.wait4

    def signalled(process, options):
        while not os.path.exists('work_dirs/made/good_seed0/listens'):
            time.sleep(.02)
        signal.raise_signal(signal.SIGHUP)
        os.kill(process, signal.SIGTERM)
        return wait(process, options)

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, 'wait4', signalled)
        done = engine('loop', **study)
    assert done.code == 75 and not done.records
    assert done.err == 'good_seed0: stopped, the next call goes on\n'
    first, later = done.runs
    assert not starts_of(later)
    (later.folder / 'train.starts').parent.mkdir()
    (later.folder / 'train.starts').write_text('0\n')  # its second will do
    done = engine('loop', **study)
    assert done.code == 0 and len(done.records) == 2
    assert len(starts_of(first)) == 2


def test_a_training_is_not_of_the_job_around_its_step(engine, monkeypatch):
    for name in ('SLURM_JOB_ID', 'SLURM_PROCID', 'SLURM_CPUS_ON_NODE'):
        monkeypatch.setenv(name, '3')
    run, = engine('loop').runs
    names = (run.folder / 'job.txt').read_text().split()
    assert 'SLURM_CPUS_ON_NODE' in names
    assert not {'SLURM_JOB_ID', 'SLURM_PROCID'} & {*names}


@pytest.mark.parametrize('count, visible, names', [
    (0, None, None), (2, None, ['0', '1', '0']),
    (2, 'GPU-a, MIG-b/1/0', ['GPU-a', 'MIG-b/1/0', 'GPU-a']),
    (1, '3,-1', ['3', '3', '3'])])
def test_each_has_one_gpu(engine, monkeypatch, tmp_path, count, visible,
                          names):
    monkeypatch.setattr('torch.cuda.device_count', lambda: count)
    monkeypatch.setattr('stepnet_mm.utils.file_lock.PATIENCE', .01)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    gpu = engine.module.one_gpu
    with gpu(tmp_path) as a, gpu(tmp_path) as b, gpu(tmp_path) as c:
        found = [own.get('CUDA_VISIBLE_DEVICES') for own in (a, b, c)]
    assert found == (names or [None] * 3)


def test_a_gpu_is_seen_by_its_tool_alone(engine, monkeypatch):
    monkeypatch.setattr(engine.module, 'gpus', lambda: [
        dict(CUDA_VISIBLE_DEVICES='5')])
    run, = engine('loop').runs
    assert (run.folder / 'visible.txt').read_text() == '5'
    environment = engine.module.environment({})
    assert environment['STEPNET_MM'] == str(engine.module.TOOLS.parent)


def _hold(path):
    with file_lock(path):
        print('held')
        time.sleep(60)


def test_what_outlived_an_engine_is_waited_for(engine, make_runs, tmp_path,
                                               monkeypatch):
    monkeypatch.setattr('stepnet_mm.utils.file_lock.PATIENCE', .01)
    run, = make_runs()
    locks = [run.folder / 'step.lock', run.folder / TRAINING_LOCK, *map(
        lock_beside, (run.stiffness_file('residual'), run.ablation_file,
                      run.robustness_file))]
    for lock in locks:
        with Forked(tmp_path, _hold, lock) as holder:
            holder.until_it_prints('held')
            assert engine.module.where(run).startswith('at work, process ')
        (tmp_path / 'stdout').unlink()  # the next one has to say it anew
        lock.unlink()
    lock = tmp_path / 'work_dirs/made/good_seed0' / TRAINING_LOCK
    with Forked(tmp_path, _hold, lock) as holder:
        holder.until_it_prints('held')

        def end(_):
            holder.signal(signal.SIGKILL)
            holder.wait(10)

        monkeypatch.setattr(engine.module.time, 'sleep', end)
        done = engine('loop')
        assert done.out.startswith('good_seed0: waits for process ')
        assert done.code == 0 and done.records


def test_a_job_of_slurm_is_one_of_its_name_and_not_one_gpu(
        engine, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(engine.module, 'call', lambda run, *command: (
        calls.append([str(word) for word in command])))
    for step in 'train', 'record':
        assert engine(step, '--run', 'good_seed0', '--sbatch', '-p gpu -t 9',
                      '--data-root', 'the data').code == 0
    folder = 'work_dirs/made'
    for words in calls:
        assert words[:4] == ['sbatch', '--wait',
                             '--job-name=made.good_seed0',
                             '--dependency=singleton']
        assert f'--output={folder}/good_seed0/output.log' in words
        assert words[words.index('-p'):][:4] == ['-p', 'gpu', '-t', '9']
    (*_, script, config, _, where, _, data), measure = calls
    assert (script, config, where, data) == (
        str(engine.module.TOOLS / 'slurm_submit.sh'),
        f'{folder}/configs/good_seed0.py', f'{folder}/good_seed0', 'the data')
    assert measure[-2] == '--wrap' and re.search(
        r"studies/run\.py made\.py record --run good_seed0 .*'the data'$",
        measure[-1]) and '--sbatch' not in measure[-1]


@pytest.mark.long
def test_step_sizes_are_held_fixed_where_there_are_some(engine):
    study = dict(
        text='measure = dict(ablate_steps=True, definitions=[])',
        some=dict(model=dict(type='ConstantStep', in_channels=1)),
        none=dict(model=dict(type='BaseDataPreprocessor')))
    done = engine('loop', **study)
    some, none = done.runs
    assert done.records[some.key].steps == dict(
        trained=52., per_channel=51., per_block=None, mean=.3,
        over_samples=.02, over_positions=0., over_channels=.1)
    assert done.records[none.key].steps == {}
    assert not starts_of(none, 'ablate')
    os.unlink('results/made.jsonl')
    again = engine('loop', **study)  # it is not done again for its record
    assert again.records[some.key].steps == done.records[some.key].steps
    assert len(starts_of(some, 'ablate')) == 1


@pytest.mark.long
def test_disturbed_images_where_the_study_says_so(engine):
    for _ in range(2):
        done = engine(
            'loop', text='measure = dict(robustness=True, definitions=[])')
        run, = done.runs
        assert done.records[run.key].robustness == dict(
            clean=52., fgsm_1=31.25)
        os.unlink('results/made.jsonl')  # it is not done again for that
    assert len(starts_of(run, 'robustness')) == 1


@pytest.mark.long
def test_the_best_epoch_is_tested_where_there_are_test_data(engine):
    own = dict(dataset=dict(type='A', ann_file='test.json'))
    same = dict(dataset=dict(type='A', data_root='data', pipeline=[]))
    for _ in range(2):
        done = engine(
            'loop', text='measure = dict(definitions=[])',
            tested=dict(best=[9, 10], test_dataloader=own),
            validated=dict(best=[10], test_dataloader=same),
            last_only=dict(test_dataloader=own))
        assert [done.records[run.key].test for run in done.runs] == [
            {'epoch': 10, 'accuracy/top1': 49.1235, 'accuracy/other': None},
            {}, {}]
        os.unlink('results/made.jsonl')  # it is not done again for that
    assert len(starts_of(done.runs[0], 'test')) == 1


@pytest.mark.long
def test_a_measurement_without_a_finite_sample_is_recorded(engine, tmp_path):
    engine.module.TOOLS = make_tools(tmp_path / 'tools')
    record = tmp_path / 'tools/record.jsonl'
    record.write_text(re.sub(r'"nsi": .*?\]\]', '"nsi": [[null, null], '
                             '[null, null]]', record.read_text()))
    found, = engine('loop').records.values()
    found = found.stiffness['residual']
    assert (found['tns'], found['tns_median'], found['nsi']) == (None, ) * 3
    assert (found['samples'], found['lost']) == (2, 2)


def test_times_that_a_kill_cut_short(make_runs):
    run, = make_runs()
    run.folder.mkdir(parents=True)
    (run.folder / 'times.json').write_text('{"cpu')
    assert times_of(run.folder)['cpu_seconds'] == 0
