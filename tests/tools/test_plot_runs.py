import json
import math
import os
import re

import cv2
import numpy as np
import pytest
import torch
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
def run(tool, capsys, tmp_path):
    """run(folders...) -> what --json holds, and what was printed"""

    def run(*arguments):
        capsys.readouterr()
        path = tmp_path / 'out.json'
        tool('analysis/plot', 'runs', *arguments, '--json', path,
             '--resamples', 200)
        return json.loads(path.read_text()), capsys.readouterr().out

    return run


def test_by_hand(run, four):
    found, out = run(*four)
    kendall, spearman = (found['correlation']['runs'][name]
                         for name in ('kendall', 'spearman'))
    assert kendall['statistic'] == pytest.approx(4 / 6)
    assert spearman['statistic'] == pytest.approx(1 - 12 / 60)
    # Exact: in 8 of the 24 orders at most one of the six pairs is concordant
    # or at most one discordant.
    assert kendall['p'] == pytest.approx(8 / 24)
    assert [row['tns'] for row in found['runs']] == pytest.approx(
        TNS, rel=1e-6)
    assert [row['metric'] for row in found['runs']] == ACCURACY
    assert {row['definition'] for row in found['runs']} == {
        'residual, trained network, unknown data'}
    assert 'kendall: +0.667  p 0.333  95% interval' in out
    assert 'Only 4: p-values and intervals are rough' in out
    assert 'methods' not in found['correlation']
    with pytest.raises(ValueError, match='runs: expected at least 3, got 2'):
        run(*four[:2])


def test_another_statistic_where_it_is_asked_for(run, work_dir, tmp_path):
    folders = [
        work_dir(f'run{i}', [acc], logged={
            'stiffness_eval/tns': -tns, 'stiffness_eval/tns_median': tns})
        for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))
    ]
    found, out = run(*folders, '--statistic', 'tns_median', '--figure',
                     tmp_path / 'figure.png')
    assert [row['tns'] for row in found['runs']] == TNS
    assert found['statistic'] == 'tns_median' and 'tns_median' in out
    assert cv2.imread(str(tmp_path / 'figure.png')).std() > 5
    assert found['runs'][0]['source'] == 'scalars.json'
    with pytest.raises(ValueError, match='stiffness_eval/tns_q95 beside'):
        run(*folders, '--statistic', 'tns_q95')


def test_another_statistic_of_a_record(work_dir):
    folder = work_dir('run', [50.])
    nsi = torch.tensor([[1., 1.], [1., 3.], [1., 399.]])
    path = folder / 'stiffness.jsonl'
    begin_record(path, RecordHeader('residual', ['a', 'b'], [1, 1], [1, 2], 3))
    append_rows(path, 0, nsi, torch.full_like(nsi, math.nan))
    areas = [0., .5 * 3, .995 * 399]
    for statistic, expected in (('tns', sum(areas) / 3),
                                ('tns_median', areas[1])):
        run = read_run(folder, 'accuracy/top1', statistic=statistic)
        assert run['tns'] == pytest.approx(expected)


def test_the_newest_record_or_the_named_one(run, four):
    write_record(four[0] / 'other.jsonl', 2.)
    os.utime(four[0] / 'other.jsonl', (1, 1))
    assert run(*four)[0]['runs'][0]['tns'] == pytest.approx(.1)
    os.utime(four[0] / 'stiffness.jsonl', (0, 0))
    assert run(*four)[0]['runs'][0]['tns'] == pytest.approx(2.)
    found, _ = run(*four, '--record', 'stiffness.jsonl')
    assert found['runs'][0]['tns'] == pytest.approx(.1)
    assert found['runs'][0]['source'] == 'stiffness.jsonl'


def test_what_was_trained_anew_does_not_count(run, four):
    for step, (best, last) in ((1, (90, 10)), (0, (10, 10))):
        later = four[0] / f'2025010{3 - step}_000000/vis_data/scalars.json'
        later.parent.mkdir(parents=True)
        later.write_text(json.dumps({'accuracy/top1': 10., 'step': step}))
        found, _ = run(*four, '--best')
        assert found['runs'][0]['metric'] == best
        assert run(*four)[0]['runs'][0]['metric'] == last


def test_a_newer_record_of_another_definition(run, work_dir):
    folders = [work_dir(f'run{i}', [acc], tns)
               for i, (tns, acc) in enumerate(zip(TNS, ACCURACY))]
    for folder, tns in zip(folders, TNS[::-1]):
        write_record(folder / 'stiffness_update.jsonl', tns, 'update')
        os.utime(folder / 'stiffness.jsonl', (0, 0))
    found, out = run(*folders)
    assert [row['tns'] for row in found['runs']] == pytest.approx(TNS)
    assert 'Definition of NSI: residual, trained' in out
    found, out = run(*folders, '--definition', 'update')
    assert [row['tns'] for row in found['runs']] == pytest.approx(TNS[::-1])
    assert 'Definition of NSI: update, trained' in out
    with pytest.raises(ValueError, match="definition 'output', got .'resid"):
        run(*folders, '--definition', 'output')


def test_scipy_on_every_resample_gives_the_interval(run, table):
    rng = np.random.default_rng(5)
    x, y = rng.random(12), rng.random(12)
    y[3] = y[4]
    found, out = run(table(map(str, range(12)), x, y), '--seed', 7,
                     '--confidence', .8)
    draws = np.random.default_rng(7).integers(12, size=(200, 12))
    values = [stats.spearmanr(x[i], y[i]).statistic for i in draws]
    row = found['correlation']['runs']['spearman']
    assert [row['low'], row['high'], row['used']] == pytest.approx(
        [*np.percentile(values, [10, 90]), 200], abs=1e-12)
    assert row['statistic'] == stats.spearmanr(x, y).statistic
    assert row['p'] == stats.spearmanr(x, y).pvalue
    assert found['correlation']['runs']['kendall'][
        'statistic'] == stats.kendalltau(x, y).statistic
    assert '80% interval' in out
    assert 'Only' not in out


def test_means_of_seeds(run, table):
    names = [f'{m}_seed{s}' for m in ('a', 'b', 'c') for s in range(2)]
    found, out = run(table(names, [1, 3, 2, 4, 3, 5],
                                    [5, 7, 6, 9, 1, 2]))
    row = found['correlation']['methods']['kendall']
    # Means: (2, 6), (3, 7.5), (4, 1.5): one pair agrees, two do not.
    assert row['statistic'] == pytest.approx(-1 / 3)
    assert "Means of the methods' seeds (n = 3)" in out


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


def test_a_metric_that_is_not_there(run, four):
    with pytest.raises(ValueError, match="run0: .*'coco/bbox_mAP'.*--metric"):
        run(*four, '--metric', 'coco/bbox_mAP')
    with pytest.raises(FileNotFoundError, match='nowhere: expected a work d'):
        run(*four, four[0] / 'nowhere')


@pytest.mark.parametrize('other', [
    dict(tns=.5, definition='output'), dict(logged={'stiffness_eval/tns': .5})
])
def test_definitions_are_not_mixed(run, four, work_dir, other):
    match = "definition of NSI.*'residual,.*': 'run3', '(output|unknown).*'oth"
    with pytest.raises(ValueError, match=match):
        run(*four, work_dir('other', [1.], **other))


@pytest.mark.parametrize('tns, metric, match', [
    ([1, 1, 1], [1, 2, 3], 'tns: .*got 1.0 in all 3'),
    ([1, 2, 'inf'], [1, 2, 3], 'c: .*got inf'),
    ([1, 2, 'x'], [1, 2, 3], 'runs.csv: expected'),
])
def test_numbers_without_a_correlation(run, table, tns, metric, match):
    with pytest.raises(ValueError, match=match):
        run(table('abc', tns, metric))


def test_a_broken_line_and_a_broken_table(run, four, tmp_path):
    path, = four[0].glob('*/vis_data/scalars.json')
    path.write_text(path.read_text() + '{"loss": ')
    with pytest.raises(ValueError, match=f'{re.escape(str(path))}: .*line 5'):
        run(*four)
    (tmp_path / 'bad.csv').write_text('run,tns\na,1\n')
    with pytest.raises(ValueError, match="bad.csv: expected .*'name'"):
        run(tmp_path / 'bad.csv')


@pytest.mark.parametrize('line', [b'5', b'[' * 100_000, b'\xff\xfe'])
def test_a_line_of_scalars_that_is_no_object(work_dir, line):
    folder = work_dir('a', [1.])
    path, = folder.glob('*/vis_data/scalars.json')
    path.write_bytes(path.read_bytes() + line + b'\n')
    with pytest.raises(ValueError, match='scalars.json: expected a JSON '
                       'object in each line, got .* in line 4'):
        read_run(folder, 'accuracy/top1')
