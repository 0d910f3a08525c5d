import json
import math
import os

import cv2
import numpy as np
import pandas as pd
import pytest
import torch
from rank_correlation import correlate, plot_correlation
from scipy import stats
from trained_runs import read_run

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record

# One discordant pair of six: tau = (5 - 1) / 6, rho = 1 - 6 * 2 / (4 * 15).
TNS, ACCURACY = [.1, .2, .3, .4], [50., 60., 80., 70.]


def write_record(path, tns, definition='residual'):
    """Two blocks with NSI 1 and b: TNS is (b - 1) / (b + 1) * b."""
    b = ((1 + tns) + math.sqrt((1 + tns)**2 + 4 * tns)) / 2
    nsi = torch.tensor([[1., b], [math.inf, b]])
    begin_record(path, RecordHeader(definition, ['a', 'b'], [1, 1], [1, 2], 2))
    append_rows(path, 0, nsi, torch.full_like(nsi, math.nan))


@pytest.fixture
def work_dir(tmp_path):
    """work_dir('se_seed0', [70., 60.], tns=.1) -> a run's folder"""

    def work_dir(name, accuracy, tns=None, logged=None, **record):
        lines = [dict(loss=1., step=1), {'stiffness_eval/tns': 9., 'step': 2}]
        lines += [{'accuracy/top1': value, 'step': i, **(logged or {})}
                  for i, value in enumerate(accuracy)]
        path = tmp_path / name / '20250101_000000/vis_data/scalars.json'
        path.parent.mkdir(parents=True)
        path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
        if tns is not None:
            write_record(tmp_path / name / 'stiffness.jsonl', tns, **record)
        return tmp_path / name

    return work_dir


@pytest.fixture
def four(work_dir):
    return [
        work_dir(f'run{i}', [90. + i, acc], tns)
        for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))
    ]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr('rank_correlation.RESAMPLES', 200)


@pytest.fixture
def run(tool, tmp_path):
    """run(folders...) -> the content of --json"""

    def run(*arguments):
        path = tmp_path / 'out.json'
        tool('analysis/plot', 'runs', *arguments, '--json', path)
        return json.loads(path.read_text())

    return run


def test_by_hand(run, four, capsys):
    found = run(*four)
    kendall, spearman = found['correlation']['runs'].values()
    assert kendall['statistic'] == pytest.approx(4 / 6)
    assert spearman['statistic'] == pytest.approx(1 - 12 / 60)
    # Exact: in 8 of the 24 orders at most one of the six pairs is concordant
    # or at most one discordant; they are those with |rho| >= .8 too.
    assert kendall['p'] == pytest.approx(8 / 24)
    assert spearman['p'] == pytest.approx(8 / 24)
    assert [row['tns'] for row in found['runs']] == pytest.approx(
        TNS, rel=1e-6)
    assert [row['metric'] for row in found['runs']] == ACCURACY
    assert {row['definition'] for row in found['runs']} == {
        'residual, trained network, unknown data'}
    out = capsys.readouterr().out
    assert out.split('kendall')[1].split()[:2] == ['0.6667', '0.3333']
    assert 'methods' not in found['correlation']


def test_another_statistic_as_it_was_logged(run, work_dir, tmp_path):
    folders = [
        work_dir(f'run{i}', [acc], logged={
            'stiffness_eval/tns': -tns, 'stiffness_eval/tns_median': tns})
        for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))]
    found = run(*folders, '--statistic', 'tns_median', '--figure',
                tmp_path / 'figure.png')
    assert [row['tns'] for row in found['runs']] == TNS
    assert found['runs'][0]['source'] == 'scalars.json'
    assert cv2.imread(str(tmp_path / 'figure.png')).std() > 5


def test_the_newest_record_of_the_definition(run, four):
    for folder, tns in zip(four, TNS[::-1]):
        write_record(folder / 'update.jsonl', tns, 'update')
        os.utime(folder / 'stiffness.jsonl', (0, 0))
    assert [row['tns'] for row in run(*four)['runs']] == pytest.approx(TNS)
    found = run(*four, '--definition', 'update')
    assert [row['tns'] for row in found['runs']] == pytest.approx(TNS[::-1])
    write_record(four[0] / 'newer.jsonl', 2.)
    row = run(*four)['runs'][0]
    assert row['tns'] == pytest.approx(2.) and row['source'] == 'newer.jsonl'


def test_what_was_trained_anew_does_not_count(four):
    for step, last in ((1, 10), (0, 10)):
        later = four[0] / f'2025010{3 - step}_000000/vis_data/scalars.json'
        later.parent.mkdir(parents=True)
        later.write_text(json.dumps({'accuracy/top1': 10., 'step': step}))
        assert read_run(four[0], 'accuracy/top1')['metric'] == last


def test_scipy_on_every_resample_gives_the_interval():
    rng = np.random.default_rng(5)
    x, y = rng.random(12), rng.random(12)
    y[3] = y[4]
    kendall, row = correlate(pd.DataFrame(dict(tns=x, metric=y))).values()
    draws = np.random.default_rng(0).integers(12, size=(200, 12))
    values = [stats.spearmanr(x[i], y[i]).statistic for i in draws]
    assert [row['low'], row['high'], row['used']] == pytest.approx(
        [*np.percentile(values, [2.5, 97.5]), 200], abs=1e-12)
    assert row['p'] == stats.spearmanr(x, y).pvalue
    assert kendall['statistic'] == stats.kendalltau(x, y).statistic


def test_means_of_seeds(run, work_dir):
    names = [f'{m}_seed{s}' for m in ('a', 'b', 'c') for s in range(2)]
    found = run(*(work_dir(name, [metric], tns) for name, tns, metric in zip(
        names, [1, 3, 2, 4, 3, 5], [5, 7, 6, 9, 1, 2])))
    row = found['correlation']['methods']['kendall']
    # Means: (2, 6), (3, 7.5), (4, 1.5): one pair agrees, two do not.
    assert row['statistic'] == pytest.approx(-1 / 3)


def test_a_look_for_each_method():
    figure = plot_correlation(pd.DataFrame([
        dict(name=f'm{i}_seed{s}', tns=i + .1 * s, metric=90. - i)
        for i in range(3) for s in range(2)]), 'top-1')
    drawn = figure.axes[0].collections
    assert drawn[1].get_offsets().tolist() == [[1, 89], [1.1, 89]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        'm0', 'm1', 'm2']


@pytest.mark.parametrize('other', [
    dict(tns=.5, definition='output'), dict(logged={'stiffness_eval/tns': .5})
])
def test_definitions_are_not_mixed(run, four, work_dir, other):
    with pytest.raises(SystemExit, match='runs: expected TNS of one def'):
        run(*four, work_dir('other', [1.], **other))


@pytest.mark.parametrize('arguments, key', [
    (('--metric', 'coco/bbox_mAP'), 'run0: .*--metric'),
    (('--definition', 'output'), 'run0: .*--definition')])
def test_wrong_work_dirs(run, four, arguments, key):
    with pytest.raises(SystemExit, match=key):
        run(*four, *arguments)


@pytest.mark.parametrize('tns, key', [
    ([1, 2], 'runs: expected at least 3, got 2'),
    ([1., 1., 1.], 'tns: .*different'), ([1, 2, math.inf], 'tns: .*finite')])
def test_numbers_without_a_correlation(tns, key):
    with pytest.raises(ValueError, match=key):
        correlate(pd.DataFrame(dict(tns=tns, metric=range(len(tns)))))
