import csv

import pytest
import torch

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


@pytest.mark.long
def test_rows_of_every_network(benchmark):
    names = 'plain', 'se_timm', 'stepnet'
    name, rows = benchmark('step_cost', '--networks', *names, *SMALL,
                           '--depth', 18, '--edge', 48)
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
    # Of fresh processes, so one did not grow by the others.
    peaks = [float(r['peak_mb']) for r in rows[:3]]
    assert 100 < min(peaks) and max(peaks) < 1.2 * min(peaks)


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
