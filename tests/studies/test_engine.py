"""The runs of a study, in this process, with made tools."""
import json
import os
import re
import signal
from types import SimpleNamespace

import by_path
import pytest
from made_study import make_study, make_tools, starts_of
from records import read_records
from study_file import runs_of
from waiting import until


@pytest.fixture
def engine(request, tmp_path, monkeypatch, capsys):
    """engine(a=dict(...)): the runs of a study of these, one after the other.

    engine('list') lists them. A text is what a method's training does.
    """
    module = by_path.load(request.config.rootpath / 'tools/studies/runs.py')
    monkeypatch.setattr(module, 'TOOLS', make_tools(tmp_path / 'tools'))
    monkeypatch.chdir(tmp_path)
    before = [(number, signal.getsignal(number)) for number in (
        signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]

    def engine(*options, text='', seeds=(0, ), **methods):
        methods = {name: dict(behaviour=own) if isinstance(own, str) else own
                   for name, own in methods.items()}
        runs, codes = runs_of(make_study(tmp_path, text, seeds, **methods),
                              tmp_path / 'work_dirs/made'), [0]
        for words in ([options[1:]] if 'list' in options else [
                ('--run', run.name, *options) for run in runs]):
            monkeypatch.setattr('sys.argv', [
                'runs.py', 'made.py', 'work_dirs/made', 'results/made.jsonl',
                *words])
            module.STOPS.clear()
            try:
                module.main()
            except SystemExit as done:
                codes.append(done.code)
        out, err = capsys.readouterr()
        return SimpleNamespace(
            runs=runs, out=out, err=err, code=max(codes), records={
                record.name: record
                for record in read_records('results/made.jsonl')})

    engine.module = module
    yield engine
    for number, handler in before:
        signal.signal(number, handler)


def test_runs_are_trained_measured_and_recorded_once(engine):
    study = dict(seeds=[0, 1], text="measure = dict(definitions=["
                 "'residual', 'output'])")
    assert engine('list', **study).out == (
        'good_seed0: not begun\ngood_seed1: not begun\n')
    first = engine(**study)
    assert first.code == 0 and 'good_seed0: accuracy/top1 52' in first.out
    record = first.records['good_seed0']
    assert (record.last, record.best) == (52., 52.)
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert set(record.stiffness) == {'residual', 'output'}
    assert record.wall_seconds > 0 and record.cpu_seconds > 0
    assert (record.commit, record.device, record.machine) == (
        'abc', 'A GPU', 'A processor, 3 threads')
    assert engine('list', **study).out == ''
    assert engine(**study).records == first.records
    assert [starts_of(run) for run in first.runs] == [1, 1]
    assert starts_of(first.runs[0], 'measure_stiffness') == 2


def test_a_tool_has_one_gpu_the_locks_and_no_job_around_it(
        engine, tmp_path, monkeypatch):
    """The locks outlive a killed engine; study.sh opened the run's."""
    for name in ('SLURM_JOB_ID', 'SLURM_PROCID', 'SLURM_CPUS_ON_NODE'):
        monkeypatch.setenv(name, '3')
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '5')
    monkeypatch.setattr('torch.cuda.device_count', lambda: 1)
    lock = os.open(tmp_path / 'run.lock', os.O_CREAT)
    os.set_inheritable(lock, True)
    done = engine(
        a='assert {"run.lock", "gpu0.lock"} <= {os.path.basename('
        'os.path.realpath(f"/proc/self/fd/{n}")) '
        'for n in os.listdir("/proc/self/fd")}; finish()')
    assert done.code == 0, done.err
    os.close(lock)
    found = json.loads((done.runs[0].folder / 'environment').read_text())
    assert found['CUDA_VISIBLE_DEVICES'] == '5'
    assert found['STEPNET_MM'] == str(engine.module.TOOLS.parent)
    assert 'SLURM_CPUS_ON_NODE' in found
    assert not {'SLURM_JOB_ID', 'SLURM_PROCID'} & {*found}


def test_failed_runs_keep_their_last_lines_and_stop_no_other(engine):
    study = dict(
        fail='print(*range(40), sep="\\n"); sys.exit(3)',
        crash='os.kill(os.getpid(), signal.SIGSEGV)',
        silent='finish(key="loss_val")',
        other='finish(key="accuracy/top5")',
        not_finite='finish(top1=float("nan"))', good='finish()')
    done = engine(**study)
    assert done.code == 1 and {*done.records} == {'good_seed0'}
    assert done.err.splitlines()[:16] == [
        'fail_seed0: failed: exit code 3, '
        'work_dirs/made/fail_seed0/output.log', *map(str, range(25, 40))]
    for name, reason in dict(
            crash='SIGSEGV', silent=r'one of \[\]', not_finite=r'\[None\]',
            other=r"metric: expected one of \['accuracy/top5'\]").items():
        assert re.search(f'{name}_seed0: failed: .*{reason}', done.err)
    for run in done.runs[:-1]:
        assert not starts_of(run, 'measure_stiffness')
    assert 'fail_seed0: begun\n' in engine('list', **study).out


def test_how_far_a_run_is(engine):
    line = ('x - mmengine - INFO - Epoch(train) [{}][ 6/16]  lr: 1.0e-01  '
            'eta: 1 day, 0:00:0{}  time: 0.25  data_time: 0.1\n'
            'Epoch(val) [{}][9/9]    accuracy/top1: 1{}.5000  time: 0.2\n')
    study = dict(a=f'print({line.format(1, 9, 1, 1)!r}, '
                 f'{line.format(2, 8, 2, 2)!r}, "AnError: ]", sep=""); '
                 'sys.exit(1)')
    engine(**study)
    assert engine('list', **study).out == (
        'a_seed0: begun, [2][ 6/16], eta: 1 day, 0:00:08  time: 0.25, '
        'accuracy/top1: 12.5000, AnError: ]\n')


def test_a_divergence_is_recorded(engine):
    study = dict(diverge='diverge()')
    done = engine(**study)
    record, = done.records.values()
    assert record.diverged and record.last is None and not record.stiffness
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert (done.code, 'diverge_seed0: diverged' in done.out) == (0, True)
    os.unlink('results/made.jsonl')
    assert engine(**study).code == 0  # it is not trained again for that
    assert starts_of(done.runs[0]) == 1


def test_what_would_not_compare_is_refused_before_anything_runs(engine):
    engine(a={})
    for key, methods, *words in (
            (r'(?s)a_seed0: expected the config.*\+seconds',
             dict(a=dict(seconds=1))),
            ('b_seed0: expected test_data',
             dict(b={'val_dataloader.dataset.ann_file': 'x'})),
            ('methods.b: .* options', dict(b={'behaviour.a': 1})),
            ('val_dataloader', dict(b={'val_dataloader': None})),
            (r"\['a'\], got \['b'\]", dict(a={}), '--methods', 'b')):
        done = engine('list', *words, **methods)
        assert done.code == 2 and re.search(key, done.err)


def test_the_config_in_a_work_dir_is_data_and_written_again(engine):
    study = dict(good={'model.keys': {'.step.': dict(a=(1, [2.5, None])),
                                      'b-c': [dict(d=-1)]}})
    run, = engine('list', **study).runs
    run.write_config()
    text = run.config_file.read_text()
    run.config_file.write_text(f'# as another yapf has it\n{text}')
    run.write_config()
    assert run.config_file.read_text() == text
    run.config_file.write_text('a = (lambda: open("ran", "w"))()')
    done = engine(**study)
    assert done.code == 1 and 'configs/good_seed0.py' in done.err
    assert not os.path.exists('ran')


def test_a_signal_stops_it_and_the_next_call_goes_on(engine, monkeypatch):
    study = dict(a='stay()')
    wait = engine.module.subprocess.Popen.wait

    def signalled(process, timeout=None):
        until(lambda: os.path.exists('work_dirs/made/a_seed0/listens'))
        signal.raise_signal(signal.SIGHUP)
        process.terminate()
        return wait(process, timeout)

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with monkeypatch.context() as patch:
        patch.setattr(engine.module.subprocess.Popen, 'wait', signalled)
        done = engine(**study)
    assert done.code == 75 and not done.records
    assert done.err == 'a_seed0: stopped, the next call goes on\n'
    done = engine(**study)
    assert done.code == 0 and len(done.records) == 1
    assert starts_of(done.runs[0]) == 2


@pytest.mark.parametrize('count, visible, names', [
    (0, '', [''] * 3), (2, '', ['0', '1', '0']),
    (2, 'GPU-a, MIG-b/1/0', ['GPU-a', 'MIG-b/1/0', 'GPU-a']),
    (1, '3,-1', ['3', '3', '3'])])
def test_each_has_one_gpu(engine, monkeypatch, tmp_path, count, visible,
                          names):
    monkeypatch.setattr('torch.cuda.device_count', lambda: count)
    found = []
    for _ in names:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
        engine.module.take_gpu(tmp_path)
        found.append(os.environ['CUDA_VISIBLE_DEVICES'])
    assert found == names


def test_a_job_of_slurm_is_one_of_its_name_and_not_one_gpu(
        engine, monkeypatch):
    calls = []
    monkeypatch.setattr('torch.cuda.device_count', lambda: 1 / 0)
    monkeypatch.setattr(engine.module, 'call', lambda run, *command: (
        calls.append([str(word) for word in command])))
    assert engine('--sbatch', '-p gpu -t 9', '--data-root',
                  'the data').code == 0
    folder = 'work_dirs/made'
    for words in calls:
        assert words[:4] == ['sbatch', '--wait',
                             '--job-name=made.good_seed0',
                             '--dependency=singleton']
        assert any(word.endswith('good_seed0/output.log') for word in words)
        assert words[words.index('-p'):][:4] == ['-p', 'gpu', '-t', '9']
    (*_, script, config, _, where, _, data), measure = calls
    assert (script, config, where, data) == (
        str(engine.module.TOOLS / 'slurm_submit.sh'),
        f'{folder}/configs/good_seed0.py', f'{folder}/good_seed0', 'the data')
    assert measure[-2] == '--wrap' and re.search(
        r"runs\.py made\.py work_dirs/made results/made\.jsonl "
        r"--run good_seed0 --data-root 'the data'$", measure[-1])


@pytest.mark.long
def test_further_measurements_are_made_once(engine, tmp_path):
    """Of steps where there are some, of test data where there are others."""
    record = tmp_path / 'tools/record.jsonl'
    record.write_text(re.sub(r'"nsi": .*?\]\]', '"nsi": [[null, null], '
                             '[null, null]]', record.read_text()))
    own = dict(dataset=dict(type='A', ann_file='test.json'))
    same = dict(dataset=dict(type='A', data_root='data', pipeline=[]))
    step = dict(type='ConstantStep', in_channels=1)
    no_step = dict(type='BaseDataPreprocessor')
    for _ in range(2):
        done = engine(
            text='measure = dict(ablate_steps=True)',
            all=dict(behaviour='finish(9, 10)', model=step,
                     test_dataloader=own),
            validated=dict(behaviour='finish(10)', model=no_step,
                           test_dataloader=same),
            last_only=dict(model=no_step, test_dataloader=own))
        whole, *others = (done.records[run.name] for run in done.runs)
        assert whole.steps == dict(
            trained=52., per_channel=51., per_block=None, mean=.3,
            over_samples=.02, over_positions=0., over_channels=.1)
        assert whole.test == {
            'epoch': 10, 'accuracy/top1': 49.1235, 'accuracy/other': None}
        assert [(r.steps, r.test) for r in others] == [({}, {})] * 2
        found = whole.stiffness['residual']  # no sample is finite
        assert [found[key] for key in (
            'tns', 'tns_median', 'nsi', 'samples', 'lost')] == [
                None, None, None, 2, 2]
        os.unlink('results/made.jsonl')  # they are not made again for that
    for tool in 'ablate_steps', 'test':
        assert starts_of(done.runs[0], tool) == 1
