import io
import json
import math
import os

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
from rank_correlation import correlate
from scipy import stats

# One discordant pair of six: tau = (5 - 1) / 6, rho = 1 - 6 * 2 / (4 * 15).
TNS, ACCURACY = [.1, .2, .3, .4], [50., 60., 80., 70.]


@pytest.fixture
def work_dir(tmp_path, write_record):
    """work_dir('se_seed0', 70., .1) -> a run's folder with this TNS"""

    def work_dir(name, accuracy, tns, definition='residual', ending=''):
        path = tmp_path / name / '20250101_000000/vis_data/scalars.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(''.join(json.dumps(line) + '\n' for line in (
            dict(loss=1., step=1), {'accuracy/top1': 90., 'step': 2},
            {'accuracy/top1': accuracy, 'step': 3})))
        # Two blocks with NSI 1 and b: TNS is (b - 1) / (b + 1) * b.
        b = ((1 + tns) + math.sqrt((1 + tns)**2 + 4 * tns)) / 2
        write_record(
            f'{name}/{definition}{ending}', torch.tensor([[1., b]]),
            blocks=['a', 'b'], stage=[1, 1], position=[1, 2],
            definition=definition)
        return tmp_path / name

    return work_dir


@pytest.fixture
def run(printed, monkeypatch):
    """run(folders...) -> its tables of runs and of each correlation"""
    monkeypatch.setattr('rank_correlation.RESAMPLES', 200)

    def run(*arguments):
        runs, *found = printed('analysis/plot', 'runs',
                               *arguments).split('\n\n')
        return [pd.read_csv(io.StringIO(text), sep=r'\s+') for text in (
            runs.partition('\ntns: ')[0],
            *(text.split('\n', 2)[2] for text in found))]

    return run


def test_by_hand(run, work_dir, tmp_path):
    four = [work_dir(f'run{i}', acc, tns)
            for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))]
    # A record of a definition that comes later does not count.
    work_dir('run0', ACCURACY[0], 5., 'update')
    runs, found = run(*four, '--figure', tmp_path / 'figure.png')
    assert cv2.imread(str(tmp_path / 'figure.png')).std() > 5
    assert found['statistic'].tolist() == pytest.approx(
        [4 / 6, 1 - 12 / 60], abs=1e-4)
    # Exact: in 8 of the 24 orders at most one of the six pairs is concordant
    # or at most one discordant; they are those with |rho| >= .8 too.
    assert found['p'].tolist() == pytest.approx([8 / 24] * 2, abs=1e-4)
    assert runs['tns'].tolist() == pytest.approx(TNS[::-1], rel=1e-5)
    assert runs['metric'].tolist() == ACCURACY[::-1]

    output = work_dir('output', 1., .5, 'output')
    for arguments, match in (
            ([output], 'runs: expected TNS of one definition'),
            (('--metric', 'coco/bbox_mAP'), 'run0: .*--metric'),
            (('--definition', 'output'), 'run0: .*--definition')):
        with pytest.raises(SystemExit, match=match):
            run(*four, *arguments)


def test_means_of_seeds_and_the_newest_record(run, work_dir):
    names = [f'{m}_seed{s}' for m in ('a', 'b', 'c') for s in range(2)]
    values = [*zip(names, [5, 7, 6, 9, 1, 2], [1, 3, 2, 4, 3, 5])]
    folders = [work_dir(*value, 'update') for value in values]
    older = work_dir('a_seed0', 5, 8., 'update', '_older')
    os.utime(older / 'update_older.jsonl', (0, 0))
    runs, _, found = run('--definition', 'update', *folders)
    assert runs['tns'].tolist() == pytest.approx([5, 4, 3, 3, 2, 1])
    # Means: (2, 6), (3, 7.5), (4, 1.5): one pair agrees, two do not.
    assert found['statistic']['kendall'] == pytest.approx(-1 / 3, abs=1e-4)


def test_scipy_on_every_resample_gives_the_interval(monkeypatch):
    monkeypatch.setattr('rank_correlation.RESAMPLES', 200)
    rng = np.random.default_rng(5)
    x, y = rng.random(12), rng.random(12)
    row = correlate(pd.DataFrame(dict(tns=x, metric=y))).loc['spearman']
    draws = np.random.default_rng(0).integers(12, size=(200, 12))
    values = [stats.spearmanr(x[i], y[i]).statistic for i in draws]
    assert row[['low', 'high']].tolist() == pytest.approx(
        [*np.percentile(values, [2.5, 97.5])], abs=1e-12)
    assert row['p'] == stats.spearmanr(x, y).pvalue


@pytest.mark.parametrize('tns, key', [
    ([1, 2], 'runs: expected at least 3, got 2'),
    ([1., 1., 1.], 'tns: .*different'), ([1, 2, math.inf], 'tns: .*finite')])
def test_numbers_without_a_correlation(tns, key):
    with pytest.raises(ValueError, match=key):
        correlate(pd.DataFrame(dict(tns=tns, metric=range(len(tns)))))
