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
from trained_runs import read_run, read_runs_table

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


@pytest.fixture
def table(tmp_path):

    def table(names, tns, metric):
        path = tmp_path / 'runs.csv'
        rows = [f'{n},{x},{y}\n' for n, x, y in zip(names, tns, metric)]
        path.write_text(''.join(['name,tns,metric\n', *rows]))
        return path

    return table


@pytest.fixture
def run(tool, capsys, tmp_path, monkeypatch):
    """run(folders...) -> the content of --json, and what was printed"""
    monkeypatch.setattr('rank_correlation.RESAMPLES', 200)

    def run(*arguments):
        capsys.readouterr()
        path = tmp_path / 'out.json'
        tool('analysis/plot', 'runs', *arguments, '--json', path)
        return json.loads(path.read_text()), capsys.readouterr().out

    return run


def test_by_hand(run, four):
    found, out = run(*four)
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
    assert 'kendall: +0.667  p 0.333  95% interval' in out
    assert 'methods' not in found['correlation']


def test_the_same_order_of_three_runs_is_no_certainty(monkeypatch):
    monkeypatch.setattr('rank_correlation.RESAMPLES', 99)
    found = correlate(pd.DataFrame(dict(
        name=['a', 'b', 'c'], tns=[1., 2., 3.], metric=[5., 6., 9.])))
    for row in found.values():
        assert (row['statistic'], row['p']) == pytest.approx((1, 2 / 6))


def test_another_statistic(run, work_dir, tmp_path):
    folders = [
        work_dir(f'run{i}', [acc], logged={
            'stiffness_eval/tns': -tns, 'stiffness_eval/tns_median': tns})
        for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))]
    found, _ = run(*folders, '--statistic', 'tns_median', '--figure',
                   tmp_path / 'figure.png')
    assert [row['tns'] for row in found['runs']] == TNS
    assert found['runs'][0]['source'] == 'scalars.json'
    assert cv2.imread(str(tmp_path / 'figure.png')).std() > 5
    path, nsi = folders[0] / 'a.jsonl', torch.tensor(
        [[1., 1.], [1., 3.], [1., 399.]])
    begin_record(path, RecordHeader('residual', ['a', 'b'], [1, 1], [1, 2], 3))
    append_rows(path, 0, nsi, torch.full_like(nsi, math.nan))
    areas = [0., .5 * 3, .995 * 399]
    for statistic, expected in (('tns', sum(areas) / 3),
                                ('tns_median', areas[1])):
        found = read_run(folders[0], 'accuracy/top1', statistic)
        assert found['tns'] == pytest.approx(expected)


def test_the_newest_record_of_the_definition(run, four):
    for folder, tns in zip(four, TNS[::-1]):
        write_record(folder / 'update.jsonl', tns, 'update')
        os.utime(folder / 'stiffness.jsonl', (0, 0))
    assert [row['tns'] for row in run(*four)[0]['runs']] == pytest.approx(TNS)
    found, out = run(*four, '--definition', 'update')
    assert [row['tns'] for row in found['runs']] == pytest.approx(TNS[::-1])
    assert 'Definition of NSI: update, trained' in out
    write_record(four[0] / 'newer.jsonl', 2.)
    row = run(*four)[0]['runs'][0]
    assert row['tns'] == pytest.approx(2.) and row['source'] == 'newer.jsonl'


def test_what_was_trained_anew_does_not_count(four):
    for step, last in ((1, 10), (0, 10)):
        later = four[0] / f'2025010{3 - step}_000000/vis_data/scalars.json'
        later.parent.mkdir(parents=True)
        later.write_text(json.dumps({'accuracy/top1': 10., 'step': step}))
        assert read_run(four[0], 'accuracy/top1')['metric'] == last


def test_scipy_on_every_resample_gives_the_interval(run, table):
    rng = np.random.default_rng(5)
    x, y = rng.random(12), rng.random(12)
    y[3] = y[4]
    found, out = run(table(map(str, range(12)), x, y))
    draws = np.random.default_rng(0).integers(12, size=(200, 12))
    values = [stats.spearmanr(x[i], y[i]).statistic for i in draws]
    kendall, row = found['correlation']['runs'].values()
    assert [row['low'], row['high'], row['used']] == pytest.approx(
        [*np.percentile(values, [2.5, 97.5]), 200], abs=1e-12)
    assert row['p'] == stats.spearmanr(x, y).pvalue
    assert kendall['statistic'] == stats.kendalltau(x, y).statistic
    assert 'Only' not in out


def test_means_of_seeds(run, table):
    names = [f'{m}_seed{s}' for m in ('a', 'b', 'c') for s in range(2)]
    found, out = run(table(names, [1, 3, 2, 4, 3, 5], [5, 7, 6, 9, 1, 2]))
    row = found['correlation']['methods']['kendall']
    # Means: (2, 6), (3, 7.5), (4, 1.5): one pair agrees, two do not.
    assert row['statistic'] == pytest.approx(-1 / 3)
    assert "Means of the methods' seeds (n = 3)" in out


def test_a_colour_and_marker_for_each_method():
    figure = plot_correlation(pd.DataFrame([
        dict(name=f'm{i}_seed{s}', tns=i + .1 * s, metric=90. - i)
        for i in range(30) for s in range(2)]), 'top-1')
    drawn = figure.axes[0].collections
    assert drawn[1].get_offsets().tolist() == [[1, 89], [1.1, 89]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        f'm{i}' for i in range(30)]
    assert len({(points.get_facecolor().tobytes(),
                 points.get_paths()[0].vertices.tobytes())
                for points in drawn}) == 30


@pytest.mark.parametrize('text, encoding', [
    ('name,tns,metric\na,1,2\n"b;c",3,4\n', 'utf-8-sig'),
    ('name;tns;metric\na;1;2\n"b;c";3;4\n', 'utf-8'),
    ('\n'.join(('"name"\ttns\tmetric', 'a\t1\t2', 'b;c\t3\t4')), 'utf-8-sig'),
], ids=['bom', 'semicolons', 'tabs'])
def test_a_table_as_spreadsheets_write_it(tmp_path, text, encoding):
    path = tmp_path / 'runs.csv'
    path.write_text(text, encoding=encoding)
    runs = read_runs_table(path)
    assert runs[['name', 'tns', 'metric']].values.tolist() == [
        ['a', 1, 2], ['b;c', 3, 4]]


@pytest.mark.parametrize('other', [
    dict(tns=.5, definition='output'), dict(logged={'stiffness_eval/tns': .5})
])
def test_definitions_are_not_mixed(run, four, work_dir, other):
    with pytest.raises(SystemExit, match='runs: expected TNS of one def'):
        run(*four, work_dir('other', [1.], **other))


@pytest.mark.parametrize('arguments, key', [
    (('--metric', 'coco/bbox_mAP'), 'run0: .*--metric'),
    (('--definition', 'output'), 'run0: .*--definition'),
    (('nowhere', ), 'nowhere: expected a work dir')])
def test_wrong_work_dirs(run, four, arguments, key):
    with pytest.raises(SystemExit, match=key):
        run(*four, *arguments)


@pytest.mark.parametrize('tns, metric, key', [
    ([1, 2], [1, 2], 'runs: expected at least 3, got 2'),
    ([1, 1, 1], [1, 2, 3], 'tns: .*got 1.0 in all 3'),
    ([1, 2, 'inf'], [1, 2, 3], 'c: .*got inf'),
    ([1, 2, 'x'], [1, 2, 3], 'runs.csv: expected'),
])
def test_numbers_without_a_correlation(run, table, tns, metric, key):
    with pytest.raises(SystemExit, match=key):
        run(table('abc', tns, metric))


@pytest.mark.parametrize('line', [b'{"loss": ', b'5', b'[' * 100_000, b'\xff'])
def test_a_line_of_scalars_that_is_no_object(work_dir, line):
    folder = work_dir('a', [1.])
    path, = folder.glob('*/vis_data/scalars.json')
    path.write_bytes(path.read_bytes() + line + b'\n')
    with pytest.raises(ValueError, match='scalars.json: .* in line 4'):
        read_run(folder, 'accuracy/top1')
