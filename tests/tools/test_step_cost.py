import csv
import sys
from types import SimpleNamespace

import pytest
import torch
from forked import Forked

from stepnet_mm.profiling import count_saved
from stepnet_mm.profiling.timing import interleave

SMALL = ('--edge', 32, '--batch-size', 2, '--rounds', 2, '--warm-up', 1)


@pytest.fixture
def benchmark(tool, monkeypatch, request, tmp_path):
    monkeypatch.syspath_prepend(
        str(request.config.rootpath / 'tools/benchmarks'))

    def run(name, *arguments):
        tool(f'benchmarks/{name}', *arguments, '--out', tmp_path)
        path, = tmp_path.glob('*.csv')
        assert path.with_suffix('.png').stat().st_size > 5000
        with path.open() as file:
            return path.stem, list(csv.DictReader(file))

    return run


@pytest.fixture
def children(tool, monkeypatch, tmp_path):
    """The networks whose peak was asked for; measured in a fork."""
    asked = []

    def run(command, **kwargs):
        assert command[0] == sys.executable and kwargs['capture_output']
        asked.append(command[-1])
        with Forked(tmp_path, tool, 'benchmarks/step_cost',
                    *command[2:]) as process:
            code = process.wait(240)
        return SimpleNamespace(
            returncode=code, stdout=process.printed(), stderr='')

    monkeypatch.setattr('subprocess.run', run)
    return asked


@pytest.mark.long
def test_rows_of_every_network(benchmark, children):
    names = 'plain', 'se_timm', 'stepnet'
    name, rows = benchmark('step_cost', '--networks', *names, *SMALL,
                           '--depth', 18, '--edge', 48)
    assert children == list(names)
    version = torch.__version__.partition('+')[0]
    assert name.startswith('step_cost-') and name.endswith(
        f'-torch{version}-fp32-contiguous')
    assert [(r['network'], r['phase']) for r in rows] == [
        (n, p) for p in ('train', 'infer') for n in names]
    for row in rows:
        assert float(row['q1_s']) <= float(row['median_s']) <= float(
            row['q3_s'])
    assert float(rows[0]['of_plain_eager']) == 1
    assert all(float(r['saved_mb']) > 1 for r in rows[:3])
    assert all(float(r['peak_mb']) > 100 for r in rows[:3])


@pytest.mark.long
def test_the_peak_is_that_of_a_fresh_process(benchmark):
    _, (row, ) = benchmark('step_cost', '--depth', 18, '--networks', 'plain',
                           '--phases', 'train', *SMALL)
    assert float(row['peak_mb']) > 100


@pytest.mark.parametrize('wrong, message', [
    (('--networks', 'stepnet'), 'expected plain'),
    (('--detector', '--networks', 'plain', 'se_timm'), 'mmdet has no se_timm'),
    (('--detector', '--networks', 'plain', '--compiled', 'plain'),
     'leave --compiled out'),
    (('--device', 'nowhere'), '--device nowhere'),
    (('--rounds', 1), 'at least 2'),
])
def test_bad_arguments(benchmark, capsys, wrong, message):
    with pytest.raises(SystemExit):
        benchmark('step_cost', *wrong)
    assert message in capsys.readouterr().err


def test_saved_bytes_by_hand():
    layer = torch.nn.Linear(8, 4)
    x = torch.randn(16, 8)
    with count_saved(layer) as found:
        layer(x).exp()
    # The input, and the exponential's result; the weight is a parameter.
    assert found['bytes'] == 4 * (16 * 8 + 16 * 4)


def test_the_rounds_that_count_are_the_last():
    clock = iter(range(10)).__next__
    assert interleave(dict(a=clock, b=clock), rounds=2, warm_up=1) == dict(
        a=[2, 4], b=[3, 5])
