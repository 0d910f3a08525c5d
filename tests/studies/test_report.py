"""Tables, figures and pages of `tools/studies/report.py`."""
import re
import sys
from dataclasses import replace
from pathlib import Path

import figures
import numpy as np
import pandas as pd
import pytest
import report as tool
from intervals import dunnett, pooled_sd, rank_correlations, spread, welch
from made_study import diverged_run, made_run, made_steps
from method_styles import label, method_styles
from records import append_record
from scipy import stats
from study_file import Study, read_study
from tables import STEP, Report

ROOT = Path(__file__).resolve().parents[2]
#: In which stepnet alone is far above.
POOLED = [made_run(name, s, last + s) for name, last in (
    ('plain', 50.), ('se', 51.), ('stepnet', 60.)) for s in range(4)]


def report_of(records, **methods):
    """Methods with these fields, of three seeds each."""
    return Report([Study(
        ROOT / 'configs/studies/table1_cifar10.py',
        {name: dict(fields, config='a.py') for name, fields
         in methods.items()}, seeds=[0, 1, 2])], records)


def cells(text):
    """Row -> column -> cell of a table."""
    head, _, *rows = [[cell.strip() for cell in line.split('|')[1:-1]]
                      for line in text.splitlines()]
    return {row[0]: dict(zip(head, row)) for row in rows}


def numbers(text):
    """Of a difference: it, and the ends of its interval."""
    return [float(x.replace('−', '-')) for x in re.findall(r'[+−][\d.]+',
                                                           text)]


def test_differences_are_dunnetts_over_all_methods_at_once():
    report = report_of(POOLED, plain={}, se={}, stepnet={})
    found = report.differences('plain')
    samples = [[last + s for s in range(4)] for last in (51., 60.)]
    wanted = stats.dunnett(*samples, control=np.arange(50., 54.),
                           rng=0).confidence_interval()
    for i, name in enumerate(('se', 'stepnet')):
        assert numbers(found[name]) == pytest.approx(
            [1. + 9 * i, wanted.low[i], wanted.high[i]], abs=.006)
    assert set(found) == {'se', 'stepnet'}
    # 1 + 1.83 (of t, one-sided, 9 degrees) * 1.29 * sqrt(2 / 4)
    assert report.verdict('plain') == (
        'Above `plain`: `stepnet`. No significant difference to `plain`: '
        '`se` (2.67).')
    assert report.verdict('stepnet') == 'Below `stepnet`: `plain`, `se`.'
    # The variance of 0 to 3 is 5 / 3.
    assert pooled_sd(report.pooled['last']) == pytest.approx(
        (1.29, 9), abs=.005)


def test_few_runs_in_which_scipy_finds_no_interval():
    """It gives one of 100 points then, with a warning alone."""
    plain, stepnet, constant, last_gamma = map(pd.Series, (
        [77.5, 76.85, 77.07], [78.29, 78.54], [78.32, 78.21], [78.93]))
    found = dunnett(dict(plain=plain, stepnet=stepnet, last=last_gamma),
                    constant)
    # The p-values by scipy are 0.019 and 0.88.
    assert numbers(found['plain']) == [-1.12, -1.96, -.29]
    assert numbers(found['stepnet']) == [.15, -.77, 1.07]


def test_a_method_that_does_not_pool_is_compared_by_welch():
    report = report_of(POOLED, plain={}, se={}, stepnet=dict(
        pooled=False, baseline='se'))
    assert pooled_sd(report.pooled['last']) == pytest.approx(
        (1.29, 6), abs=.005)
    wanted = stats.ttest_ind(
        np.arange(60., 64.), np.arange(50., 54.),
        equal_var=False).confidence_interval()
    found = report.differences('plain')['stepnet']
    assert found.endswith(' †')
    assert numbers(found) == pytest.approx([10., *wanted], abs=.006)
    rows = cells(report.results(['plain']))
    assert rows['stepnet']['minus its own baseline'].startswith(
        '`se`: +9.00 [')
    assert rows['plain']['minus `plain`'] == ''
    assert welch(pd.Series([1.]), pd.Series([3., 4.])) == ('−2.50 (one run)')


def test_what_each_network_gains():
    """By Dunnett's of its own methods, whatever the others do."""
    report = report_of(
        [made_run(f'{network}_{step}', s, level + s + gain)
         for network, level in (('a', 50.), ('b', 70.)) for s in range(4)
         for step, gain in (('plain', 0), ('stepnet', 3), ('constant', s))],
        **{f'{network}_{step}': dict(
            baseline=f'{network}_plain' if step != 'plain' else '')
           for network in 'ab' for step in ('plain', 'constant', 'stepnet')})
    runs = [np.arange(4.), 2 * np.arange(4.), 3 + np.arange(4.)]
    wanted = stats.dunnett(*runs[1:], control=runs[0],
                           rng=0).confidence_interval()
    found = cells(report.gains())
    assert list(found) == ['a', 'b']
    for row in found.values():
        assert [numbers(row[f'{step}, gain'])
                for step in ('constant', 'stepnet')] == [
            pytest.approx([gain, low, high], abs=.006)
            for gain, low, high in zip((1.5, 3.), *wanted)]
        # 1.5 + 1.83 * 1.83 * sqrt(2 / 4), of 9 degrees of freedom
        assert row['stepnet minus constant'].endswith('† (3.87)')
    alone = Report(report.studies, [r for r in report.records if not r.seed])
    assert cells(alone.gains())['a']['stepnet minus constant'
                                     ] == '+3.00 (one run)'
    axes, = figures.gains_figure(report).axes
    assert axes.lines[4].get_xdata().tolist() == [1.5, 2.5, 3.5, 4.5] * 2


def test_an_option_has_its_value_where_all_methods_share_it():
    options = [dict(lr=rate, epochs=2) for rate in (.1, .4)]
    report = report_of([], **{
        name: dict(options=o) for name, o in zip('ab', options)})
    assert tool.settings(report) == [
        'Changed in every config: `lr`, `epochs` 2.']


def test_runs_that_are_missing_or_diverged():
    """The tables of whole studies are the pages of docs/results, in CI."""
    report = report_of(
        [made_run('plain', 0, 50.), diverged_run('se', 2),
         *(made_run('se', s, 52. + s) for s in (0, 1)),
         *(diverged_run('sem', s) for s in range(3)),
         made_run('one', 0, 53.25, stiffness={})],
        se={}, plain={}, stepnet={}, sem={}, one={})
    found = cells(report.results(['plain'], whole=True))
    assert {name: (row['n'], row['last epoch'], row['mean TNS'])
            for name, row in found.items()} == dict(
        se=('2, 1 diverged', '52.50 ± 0.71', '1.000 ± 0.000'),
        plain=('1 of 3', '50.00', '1.000'),
        stepnet=('0 of 3', 'not yet run', ''),
        sem=('0, 3 diverged', 'diverged', ''), one=('1 of 3', '53.25', ''))


def test_images_that_are_disturbed_and_steps_of_no_number():
    page = tool.page_of(report_of([
        made_run('plain'), *(made_run(
            'se', s, steps=made_steps(per_block=None),
            robustness=dict(clean=50., fgsm_1=s)) for s in (1, 2))],
        plain={}, se={}))
    disturbed = cells(page.partition('## On disturbed images\n\n')[2]
                      .partition('\n\n')[0])
    assert disturbed['se']['on fgsm_1'] == '1.50 ± 0.71'
    assert 'fixed per channel' in page and 'fixed per block' not in page
    assert spread(pd.Series([1., np.nan, 2.]), 1) == '1.5 ± 0.7 (2 of 3)'


def test_an_ap_that_is_none():
    report = report_of([made_run(last=.5, metric='coco/bbox_mAP', test={
        'epoch': 3, 'coco/a_precision': .125, 'coco/b_precision': None,
        'coco/bbox_mAP_s': -1.})], plain={})
    assert report.level('plain', 'test a, AP') == '12.50'
    assert not len(report.last('plain', 'test b, AP'))
    assert not len(report.last('plain', 'test APs'))


def test_between_methods_and_within_them_may_be_of_opposite_sign():
    # Methods lie on a falling line, the seeds of each on a rising one.
    records = [made_run(f'm{i}', s, 90. - 10 * i + s, tns=1. + i + .1 * s)
               for i in range(5) for s in range(3)]
    frame = report_of(records, **{f'm{i}': {} for i in range(5)}).frame
    found = rank_correlations(frame, 'mean TNS, residual')
    assert found['τ over method means'] == '−1.00 [−1.00, −1.00]'
    assert found['ρ over method means'] == '−1.00'
    assert found['τ within methods, over runs'] == '+1.00'
    wanted = stats.kendalltau(frame['mean TNS, residual'], frame['last'])[0]
    assert numbers(found['τ over all runs'])[0] == pytest.approx(wanted,
                                                               abs=.006)
    assert {*rank_correlations(frame[:2], 'mean TNS, residual').values()} == {
        'none: needs 3 that differ'}


def test_scipy_on_every_resample_gives_the_interval_of_tau():
    x, y = np.random.default_rng(5).random((2, 12))
    found = rank_correlations(pd.DataFrame(dict(
        method=[*'abcdefghijkl'], tns=x, last=y)), 'tns')
    draws = np.random.default_rng(0).integers(12, size=(999, 12))
    values = [stats.kendalltau(x[i], y[i]).statistic for i in draws]
    assert numbers(found['τ over method means'])[1:] == pytest.approx(
        [*np.percentile(values, [2.5, 97.5])], abs=.006)


@pytest.mark.parametrize('records', [
    [], [diverged_run('plain'), diverged_run('se')],
    [made_run(epochs=[], stiffness={})],
    [made_run(stiffness=dict(residual=dict(
        tns=None, tns_median=None, nsi=None,
        blocks=[dict(stage=1, nsi=None, step=None)])))]])
def test_odd_records_have_a_page_and_figures(tmp_path, records):
    report = report_of(records, plain={}, se={})
    links = figures.write_figures(report, tmp_path / 'page')
    assert '## Results' in tool.page_of(report, figures=links)
    assert any('dot for each run' in caption for caption in links) == any(
        r.last is not None for r in records)


def test_accuracy_by_method_epoch_and_mean_step():
    report = report_of([
        *POOLED, *(made_run('a_b', s, 40., step=.5) for s in range(2)),
        made_run('eca', 0, step=.5, steps=made_steps(mean=.4))],
        stepnet={}, a_b=dict(pooled=False), eca={}, plain={}, se={})
    upper, lower = figures.accuracy_figure(report).axes
    assert [[t.get_text() for t in axes.get_yticklabels()]
            for axes in (upper, lower)] == [
                ['ECA', 'plain', 'SE', 'StepNet'], ['a b']]
    dots, mean = upper.lines[2:4]
    assert dots.get_xdata().tolist() == [50, 51, 52, 53]
    assert mean.get_xdata().tolist() == [51.5]
    axes, = figures.learning_curves_figure(report).axes
    assert {line.get_label(): line.get_xydata()[-1].tolist()
            for line in axes.lines} == {
                'a b': [4, -11.5], 'ECA': [4, -1.5], 'plain': [4, 0],
                'SE': [4, 1], 'StepNet': [4, 10]}
    # Blocks of .5 and .25; as it was measured; by definition.
    assert report.runs[STEP].mean().dropna().to_dict() == dict(
        a_b=.375, eca=.4, plain=1.)
    report = report_of(report.records, a_b={}, eca={}, plain={})
    axes, = figures.steps_figure(report).axes
    assert [line.get_label() for line in axes.lines] == ['a b', 'ECA', 'plain']


def test_no_two_methods_look_alike():
    found = method_styles(['se_a', 'se', 'plain', 'other', 'stepnet', 'more',
                   'preact_plain', 'adaptor_a'])
    assert len({(own['color'], own['marker'])
                for own in found.values()}) == len(found)
    for name, kin in (('se_a', 'se'), ('preact_plain', 'plain'),
                      ('adaptor_a', 'stepnet'), ('other', 'more')):
        assert found[name]['color'] == found[kin]['color']
    for name, words in dict(
            se_random3='SE random 3', constant_lr_01='constant 0.27 lr 0.1',
            constant_020='constant 0.20', iebn_constant='IEBN constant',
            last_gamma_lr_04='LastNorm 0.27 lr 0.4').items():
        assert label(name) == words


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Two studies that compare, with records."""
    monkeypatch.setattr(tool, 'ROOT', tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / 'configs/studies'
    folder.mkdir(parents=True)
    for name, methods in dict(first=['plain', 'se'],
                              second=['stepnet']).items():
        (folder / f'{name}.py').write_text(
            f'"""The question of {name}."""\n'
            f'methods = {{name: dict(config="config.py") for name in '
            f'{methods}}}\nseeds = [0, 1, 2, 3]\n'
            "options = {'train_cfg.max_epochs': 4, 'a.pipeline': [dict()]}\n")
        settings = read_study(folder / f'{name}.py').settings
        for record in POOLED:
            if record.method in methods:
                append_record(f'results/{name}.jsonl', replace(
                    record, settings=settings, stiffness=dict(
                        residual=record.stiffness['residual'])))
    return folder


@pytest.fixture
def run_tool(monkeypatch, capsys):
    """run_tool(...) -> its exit code and output."""

    def run_tool(*arguments):
        monkeypatch.setattr(sys, 'argv', ['report.py', *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            tool.main()
        return done.value.code, ''.join(capsys.readouterr())

    return run_tool


def test_studies_that_compare_are_reported_together(repository, run_tool):
    Path('results/second.jsonl').rename('more.jsonl')
    command = (repository / 'second.py', '--beside', repository / 'first.py',
               '--records', 'results/first.jsonl', 'more.jsonl')
    code, said = run_tool(*command)
    assert code == 0 and said.startswith('# The question of second\n')
    assert re.findall(r'\| (\w+) +\| 4 ', said) == ['plain', 'se', 'stepnet']
    code, said = run_tool(*command[:3], '--methods', 'plain', 'stepnet')
    assert code == 0 and '| se ' not in said and '`stepnet` (0 of 4)' in said
    for wrong in ('--methods', 'sem'), ('--records', 'gone'), ('--check', ):
        code, said = run_tool(*command, *wrong)
        assert code == 2 and wrong[-1] in said


def test_pages_of_the_repository(repository, run_tool):
    old = ('a\n<!-- last epoch: first+second stepnet less plain -->\nold\n'
           '<!-- end -->\nb\n<!-- mean step: first -->\n<!-- end -->')
    readme, page = Path('README.md'), Path('docs/results/first.md')
    page.parent.mkdir(parents=True)
    command = ('python tools/studies/report.py configs/studies/first.py '
               '--out docs/results/first\n')
    readme.write_text(old)
    page.write_text(f'{tool.WRITTEN}\n{command}')
    (page.parent / 'other.md').write_text(
        'python tools/studies/report.py gone.py --out it')
    code, said = run_tool('--pages', '--check')
    assert code == 1
    for name in ('README.md', 'docs/results/first.md',
                 'docs/results/figures/first_accuracy.png'):
        assert f'not up to date: {name}\n' in said
    assert readme.read_text() == old
    assert run_tool('--pages') == (0, '')
    text = readme.read_text()
    assert '| stepnet ' in text and '| 1.00 to 1.00 | plain ' in text
    assert 'old' not in text and '\n| plain' not in text
    text = page.read_text()
    assert command in text and 'other settings' not in text
    assert len(re.findall(r'\]\((figures/first_\w+\.png)\)', text)) == 1
    assert run_tool('--pages', '--check') == (0, '')
    for comment in ('last epoch: first plain less plian',
                    'last epoch: gone plain'):
        readme.write_text(f'<!-- {comment} -->\n<!-- end -->')
        code, said = run_tool('--pages')
        assert code == 2 and re.search('plian|gone.py', said)
