import csv
from pathlib import Path

import by_path
import pytest
import torch

STEP_COST = by_path.load(
    Path(__file__).parents[2] / 'tools/benchmarks/step_cost.py')


@pytest.mark.long
def test_rows_of_every_network(tool, tmp_path):
    tool('benchmarks/step_cost', '--networks', 'se_timm', '--depth', 18,
         '--edge', 48, '--batch-size', 2, '--rounds', 2, '--warm-up', 1,
         '--out', tmp_path / 'new')
    path, = tmp_path.glob('new/*.csv')
    version = torch.__version__.partition('+')[0]
    assert path.stem.startswith('step_cost-') and path.stem.endswith(
        f'-torch{version}-fp32-contiguous')
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [(r['network'], r['phase']) for r in rows] == [
        (n, p) for p in ('train', 'infer') for n in ('plain', 'se_timm')]
    for row in rows:
        assert float(row['q1_s']) <= float(row['median_s']) <= float(
            row['q3_s'])
    assert float(rows[0]['of_plain_eager']) == 1
    assert all(float(r['saved_mb']) > 1 for r in rows[:2])


def test_saved_bytes_by_hand():
    layer = torch.nn.Linear(8, 4)
    x = torch.randn(16, 8)
    with STEP_COST.count_saved(layer) as found:
        layer(x).exp()
    # The input, and the exponential's result; the weight is a parameter.
    assert sum(found.values()) == 4 * (16 * 8 + 16 * 4)


def test_the_rounds_that_count_are_the_last():
    clock = iter(range(10)).__next__
    assert STEP_COST.interleave(
        dict(a=clock, b=clock), 2, warm_up=1) == dict(a=[2, 5], b=[3, 4])
