"""A study as a job array on a real Slurm."""
import re
import shutil
import sys

import pytest
from jobs import ROOT
from made_study import HERE, make_study, make_tools, recorded, starts_of
from made_study import runner_of as made_runner

from stepnet_mm.studies.run import runs_of
from stepnet_mm.studies.slurm_array import NothingToSubmit, SlurmArray

pytestmark = pytest.mark.xdist_group('slurm')

#: What study.py run --trained does, with the made tools.
MEASURE = '''
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from made_study import read_study, runner_of
from stepnet_mm.studies.run import runs_of
folder, tools = map(Path, sys.argv[2:])
runner_of(tools, folder, trained_only=True).run(
    runs_of(read_study(folder / 'made.py'), folder / 'runs'))
'''


@pytest.mark.long
def test_trained_in_an_array_preempted_and_measured(lab, tmp_path,
                                                    monkeypatch):
    monkeypatch.setenv('SLURM_CONF', lab.environment['SLURM_CONF'])
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    tools = make_tools(tmp_path / 'a repository/tools')
    shutil.copy(ROOT / 'tools/slurm_submit.sh', tools)
    runs = runs_of(make_study(tmp_path, good={}, fail=dict(behaviour='fail'),
                              preempted=dict(behaviour='preempted')),
                   tmp_path / 'runs')
    good, fail, preempted = runs
    array = SlurmArray(tools, tmp_path / 'runs', 'main', 2, ['--time=10'])
    command = [sys.executable, '-c', MEASURE, str(HERE), str(tmp_path),
               str(tools)]
    said = array.submit(runs, command)
    job, after = re.search(r'array (\d+); job (\d+)', said).groups()
    with pytest.raises(NothingToSubmit, match='submit: 3 in the queue'):
        array.submit(runs, command)

    lab.wait((preempted.folder / 'listens').exists, 60)
    lab.run('scancel', '--signal=USR1', f'{job}_3')
    lab.wait(lambda: lab.field(after, 'JobState') in ('COMPLETED', 'FAILED'),
             180)
    assert lab.field(after, 'JobState') == 'COMPLETED'
    runner = made_runner(tools, tmp_path)
    assert set(recorded(runner)) == {good.key, preempted.key}
    assert [len(starts_of(run)) for run in runs] == [1, 1, 2]
    said = (preempted.folder / 'requeue.txt').read_text()
    assert said == f'requeueing Slurm job {job}_3, 1 of 20'
    log, = (tmp_path / 'runs/slurm').glob('*_3.log')
    assert 'start 2, 1 ranks' in log.read_text()
    assert array._queued() == set()
