"""Every run once, whatever happens to a process or the disk."""
import os
import re
import signal
import time
from types import SimpleNamespace

import pytest
from forked import Forked
from made_study import make_tools, once, recorded, runner_of, starts_of

from stepnet_mm.studies import runner as runner_module
from stepnet_mm.studies.progress import failure_of, lock_of, state_of
from stepnet_mm.utils.file_lock import TRAINING_LOCK, file_lock, lock_beside


def behave(*names):
    """Methods that behave like this: spaces become _."""
    return {name.replace(' ', '_'): dict(behaviour=name) for name in names}


def state(run, runner):
    return state_of(run, recorded(runner)).state


def test_runs_are_trained_measured_and_recorded_once(make_runs, make_runner):
    runs = make_runs(seeds=[0, 1], text="measure = dict(definitions=["
                     "'residual', 'output'])")
    runner = make_runner(jobs=2)
    assert runner.run(runs) == []
    first = recorded(runner)
    assert set(first) == {('good', 0), ('good', 1)}
    record = first['good', 0]
    assert (record.last, record.best) == (52., 52.)
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert set(record.stiffness) == {'residual', 'output'}
    assert record.wall_seconds > 0
    assert (record.commit, record.device, record.machine) == (
        'abc', 'A GPU', 'A processor, 3 threads')
    make_runner().run(runs)
    assert recorded(runner) == first
    for run in runs:
        assert len(starts_of(run)) == 1
        assert len(starts_of(run, 'measure')) == 2


@pytest.mark.long
def test_step_sizes_are_held_fixed_where_there_are_some(
        make_runs, make_runner):
    some, none = runs = make_runs(
        text='measure = dict(ablate_steps=True, definitions=[])',
        some=dict(model=dict(type='ConstantStep', in_channels=1)),
        none=dict(model=dict(type='BaseDataPreprocessor')))
    runner = make_runner()
    assert runner.run(runs) == []
    records = recorded(runner)
    assert records[some.key].steps == dict(
        trained=52., per_channel=51., per_block=None, mean=.3,
        over_samples=.02, over_positions=0., over_channels=.1)
    assert records[none.key].steps == {} and not starts_of(none, 'ablate')
    runner.records.unlink()
    assert runner.run(runs) == []  # it is not done again for its record
    assert recorded(runner)[some.key].steps == records[some.key].steps
    assert len(starts_of(some, 'ablate')) == 1


@pytest.mark.long
def test_disturbed_images_where_the_study_says_so(make_runs, make_runner):
    run, = runs = make_runs(
        text='measure = dict(robustness=True, definitions=[])')
    runner = make_runner()
    for _ in range(2):
        assert runner.run(runs) == []
        assert recorded(runner)[run.key].robustness == dict(
            clean=52., fgsm_1=31.25)
        runner.records.unlink()  # it is not done again for its record
    assert len(starts_of(run, 'robustness')) == 1


@pytest.mark.long
def test_the_best_epoch_is_tested_where_there_are_test_data(
        make_runs, make_runner):
    own = dict(dataset=dict(type='A', ann_file='test.json'))
    same = dict(
        dataset=dict(type='A', data_root='data', pipeline=[]))
    tested, validated, last_only = runs = make_runs(
        text='measure = dict(definitions=[])',
        tested=dict(best=[9, 10], test_dataloader=own),
        validated=dict(best=[10], test_dataloader=same),
        last_only=dict(test_dataloader=own))
    runner = make_runner()
    assert runner.run(runs) == []
    records = recorded(runner)
    assert records[tested.key].test == {
        'epoch': 10, 'accuracy/top1': 49.1235, 'accuracy/other': None}
    assert records[validated.key].test == records[last_only.key].test == {}
    runner.records.unlink()
    assert runner.run(runs) == []  # it is not done again for its record
    assert recorded(runner)[tested.key].test == records[tested.key].test
    assert len(starts_of(tested, 'test')) == 1


@pytest.mark.long
def test_a_measurement_without_a_finite_sample_is_recorded(
        make_runs, tmp_path):
    tools = make_tools(tmp_path / 'tools')
    record = tools / 'record.jsonl'
    record.write_text(re.sub(r'"nsi": .*?\]\]', '"nsi": [[null, null], '
                             '[null, null]]', record.read_text()))
    run, = runs = make_runs()
    runner = runner_of(tools, tmp_path)
    assert runner.run(runs) == []
    found = recorded(runner)[run.key].stiffness['residual']
    assert (found['tns'], found['tns_median'], found['nsi']) == (None, ) * 3
    assert (found['samples'], found['lost']) == (2, 2)


def test_a_failure_is_kept_and_stops_no_other(make_runs, make_runner):
    bad, good = runs = make_runs(**behave('fail', 'good'))
    runner = make_runner()
    assert runner.run(runs) == ['fail_seed0']
    assert set(recorded(runner)) == {('good', 0)}
    lines = failure_of(bad).splitlines()
    assert lines[0] == f'exit code 3, {bad.log}'
    assert lines[1:] == [f'line {n}' for n in range(25, 40)]
    assert state_of(bad, {}).note == failure_of(bad)
    again = make_runner()
    assert again.run(runs) == ['fail_seed0']
    assert len(starts_of(bad)) == 1
    assert make_runner(retry=True).run(runs) == ['fail_seed0']
    assert len(starts_of(bad)) == 2


def test_a_divergence_is_recorded(make_runs, make_runner):
    run, = runs = make_runs(**behave('diverge'))
    runner = make_runner()
    assert runner.run(runs) == []
    record = recorded(runner)[run.key]
    assert record.diverged and record.last is None and not record.stiffness
    assert [e['loss'] for e in record.epochs] == [2., 1.]
    assert state(run, runner) == 'diverged'
    runner.records.unlink()
    runner.run(runs)  # it is not trained again for its record
    assert len(starts_of(run)) == 1


def test_a_killed_training_goes_on_once(make_runs, make_runner):
    once_killed, always = runs = make_runs(
        **behave('killed once', 'killed always'))
    runner = make_runner()
    assert runner.run(runs) == [always.name]
    assert set(recorded(runner)) == {once_killed.key}
    assert len(starts_of(once_killed)) == len(starts_of(always)) == 2
    assert not failure_of(always)
    assert 'stopped (SIGKILL)' in runner.said[-1]


def test_runs_without_a_result_are_failures_and_not_measured(
        make_runs, make_runner):
    *bad, good = runs = make_runs(
        **behave('crash', 'silent', 'not finite', 'skip'))
    runner = make_runner()
    assert runner.run(runs) == [run.name for run in bad]
    # That a loss was skipped is no divergence.
    assert recorded(runner)[good.key].last == 52. == max(
        record.last for record in recorded(runner).values())
    for run, reason in zip(bad, ('SIGSEGV', 'got none', 'got None')):
        assert reason in failure_of(run)
        assert not starts_of(run, 'measure')


def test_stopped_and_gone_on(make_runs, make_runner):
    run, later = runs = make_runs(**behave('long', 'good'))
    runner = make_runner()
    thread = once((run.folder / 'listens').exists, runner.stop)
    assert runner.run(runs) == []
    thread.join()
    assert 'stopped (exit code 75)' in runner.said[-1]
    assert not starts_of(later)
    make_runner().run(runs)
    assert set(recorded(runner)) == {run.key, later.key}
    assert len(starts_of(run)) == 2


def test_a_process_that_ignores_it_is_killed_the_second_time(
        make_runs, make_runner):
    run, = runs = make_runs(**behave('deaf'))
    runner = make_runner()

    def stop_twice():
        runner.stop()
        time.sleep(5 * runner_module.PAUSE)
        assert len(runner._children) == 1
        runner.stop()

    thread = once((run.folder / 'listens').exists, stop_twice)
    runner.run(runs)
    thread.join()
    assert runner.said[-1].startswith('deaf_seed0: stopped (SIGKILL)')
    assert not failure_of(run)


def test_a_stop_while_a_process_starts(make_runs, make_runner, monkeypatch):
    run, = runs = make_runs(**behave('long'))
    runner = make_runner()
    popen = runner_module.subprocess.Popen

    def start(*args, **kwargs):
        runner.stop()
        return popen(*args, **kwargs)

    monkeypatch.setattr(runner_module.subprocess, 'Popen', start)
    runner.run(runs)
    assert runner.said[-1].startswith('long_seed0: stopped (')


@pytest.mark.long
@pytest.mark.parametrize('what', ['append_record', 'write_failure',
                                  'add_times'])
def test_a_full_disk_is_one_message_and_loses_nothing(
        make_runs, make_runner, monkeypatch, what):
    runs = make_runs(**behave('fail', 'good'))
    runner = make_runner()

    def full(*_):
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patch:
        patch.setattr(runner_module, what, full)
        with pytest.raises(RuntimeError, match='_seed0: .*No space left'):
            runner.run(runs)
    assert (what == 'append_record') == bool(starts_of(runs[1]))
    assert make_runner(retry=True).run(runs) == ['fail_seed0']
    assert set(recorded(runner)) == {('good', 0)}
    assert len(starts_of(runs[1])) == 1


def test_a_disk_that_a_training_finds_full_halts_the_others(
        make_runs, make_runner, monkeypatch):
    full, good = runs = make_runs(**behave('full disk', 'good'))
    room = SimpleNamespace(free=1)
    monkeypatch.setattr(runner_module.shutil, 'disk_usage', lambda _: room)
    with pytest.raises(RuntimeError, match='full_disk_seed0: No space left'):
        make_runner().run(runs)
    assert not failure_of(full) and not starts_of(good)
    room.free = 1 << 40  # another folder was full
    assert make_runner().run(runs) == [full.name]
    assert set(recorded(make_runner())) == {('good', 0)}


def test_a_training_is_not_of_the_job_around_the_runner(
        make_runs, make_runner, monkeypatch):
    for name in ('SLURM_JOB_ID', 'SLURM_PROCID', 'SLURM_CPUS_ON_NODE'):
        monkeypatch.setenv(name, '3')
    run, = runs = make_runs()
    make_runner().run(runs)
    names = (run.folder / 'job.txt').read_text().split()
    assert 'SLURM_CPUS_ON_NODE' in names
    assert not {'SLURM_JOB_ID', 'SLURM_PROCID'} & {*names}


def _run(runs, tools, folder, **settings):
    runner_of(tools, folder, **settings).run(runs)


@pytest.mark.long
def test_two_runners_share_the_work(make_runs, make_runner, tools, tmp_path):
    runs = make_runs(seeds=range(6), good=dict(seconds=.3))
    for name in ('a', 'b'):
        (tmp_path / name).mkdir()
    both = [Forked(tmp_path / name, _run, runs, tools, tmp_path)
            for name in ('a', 'b')]
    assert [fork.wait(60) for fork in both] == [0, 0]
    assert len(recorded(make_runner())) == 6
    assert [len(starts_of(run)) for run in runs] == [1] * 6


def test_a_training_that_outlives_its_runner_is_left_alone(
        make_runs, make_runner, tools, tmp_path):
    run, = runs = make_runs(**behave('long'))
    with Forked(tmp_path, _run, runs, tools, tmp_path) as fork:
        once((run.folder / 'listens').exists, lambda: None).join()
        fork.signal(signal.SIGKILL)
        fork.wait(10)
    orphan = int(starts_of(run)[0])
    os.kill(orphan, 0)
    os.kill(orphan, signal.SIGKILL)
    # The real train.py holds this lock as long as it lives.
    with Forked(tmp_path, _hold, run.folder / TRAINING_LOCK) as holder:
        holder.until_it_prints('held')
        assert state_of(run, {}).state == 'running'
        runner = make_runner()
        assert runner.run(runs) == []
        assert runner.said[0].startswith('long_seed0: left to process ')
    assert len(starts_of(run)) == 1


@pytest.mark.parametrize('measured', [
    lambda run: run.stiffness_file('residual'),
    lambda run: run.ablation_file,
    lambda run: run.robustness_file])
def test_so_is_a_measurement(make_runs, make_runner, tmp_path, measured):
    run, = runs = make_runs()
    with Forked(tmp_path, _hold, lock_beside(measured(run))) as holder:
        holder.until_it_prints('held')
        assert state_of(run, {}).state == 'running'
        runner = make_runner()
        assert runner.run(runs) == []
        assert runner.said[0].startswith('good_seed0: left to process ')


def _hold(path):
    with file_lock(path):
        print('held')
        time.sleep(60)


def test_a_status_in_the_same_process_leaves_the_lock(make_runs, tmp_path):
    run, = make_runs()
    with file_lock(lock_of(run)):
        assert state_of(run, {}).note == 'this process'
        with Forked(tmp_path, _hold, lock_of(run)) as other:
            assert other.wait(20) == 1
    assert 'LockTaken: process' in other.printed('stderr')


@pytest.mark.long
def test_trained_only(make_runs, make_runner):
    trained, waiting = runs = make_runs(seeds=[0, 1])
    for run in runs:
        run.write_config()
    make_runner().run([trained])
    make_runner().records.unlink()
    runner = make_runner(trained_only=True)
    runner.run(runs)
    assert set(recorded(runner)) == {trained.key}
    assert (len(starts_of(trained)), starts_of(waiting)) == (1, [])


@pytest.mark.long
def test_each_slot_has_its_environment(make_runs, make_runner):
    runs = make_runs(seeds=range(4), good=dict(seconds=.3))
    runner = make_runner(jobs=4, environments=[
        dict(CUDA_VISIBLE_DEVICES='5'), dict(CUDA_VISIBLE_DEVICES='7')])
    assert runner.run(runs) == [] and len(recorded(runner)) == 4
    assert sorted((run.folder / 'visible.txt').read_text()
                  for run in runs) == ['5', '5', '7', '7']


def test_runs_that_would_not_compare_are_refused(make_runs, make_runner):
    make_runner().run(make_runs(a={}))
    for key, text, methods in (
            (r"a_seed0: expected config .*seconds: 'not there' -> 1", '',
             dict(a=dict(seconds=1))),
            ('b_seed0: expected settings', 'measure = dict(num_samples=3)',
             dict(b={})),
            ('b_seed0: expected test_data', '',
             dict(b={'val_dataloader.dataset.ann_file': 'x'})),
            ('val_dataloader', '', dict(b={'val_dataloader': None}))):
        runs = make_runs(text, **methods)
        with pytest.raises(ValueError, match=key):
            make_runner().run(runs)
        assert len(starts_of(runs[0])) == ('a' in methods)
    make_runner().records.unlink()
    with pytest.raises(ValueError, match="begun with, .*'not there' -> 1"):
        make_runner().run(make_runs(a=dict(seconds=1)))


@pytest.mark.long
def test_a_metric_that_nothing_gives(make_runs, make_runner):
    run, other = runs = make_runs("metric = 'accuracy/top5'", seeds=[0, 1])
    message = "metric: expected one of ['accuracy/top1']"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        make_runner().run(runs)
    assert not starts_of(run, 'measure') and not starts_of(other)
    assert message in state_of(run, {}).note
    # Another run may have it: the one that has not does not halt it again.
    assert message in failure_of(run)
