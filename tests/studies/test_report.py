"""Tables, the page and `tools/studies/report.py`."""
import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import diverged_run, made_run, made_steps, made_study

from stepnet_mm.studies.first_config import FirstConfig
from stepnet_mm.studies.limits import limits
from stepnet_mm.studies.page import images_per_epoch, study_page
from stepnet_mm.studies.records import append_record
from stepnet_mm.studies.study import StudyMethod, read_study
from stepnet_mm.studies.tables import (
    ablation_table,
    correlation_table,
    epoch_table,
    result_table,
    stage_table,
    stiffness_table,
    table,
)
from stepnet_mm.visualization.study_figures import study_figures

ROOT = Path(__file__).resolve().parents[2]


def methods_of(*names, seeds=(0, 1, 2), paper=None):
    return [StudyMethod(name, Path('a.py'), {}, list(seeds), paper)
            for name in names]


def residual_only(records):
    """Two thirds less to compute."""
    return [
        replace(record, stiffness=dict(residual=record.stiffness['residual']))
        for record in records]


def cells(text):
    """Row -> column -> cell of a table."""
    head, _, *rows = [
        [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
        for line in text.splitlines()]
    assert all(len(row) == len(head) for row in rows)
    return {row[0]: dict(zip(head, row)) for row in rows}


THREE = [made_run('plain', s, v) for s, v in ((0, 50.), (1, 60.), (2, 55.))]
#: One of them has a Δt.
TWO = [made_run('plain'), made_run('se', step=.5)]
SE = [made_run('se', s, v, tns=.5) for s, v in ((0, 52.), (1, 61.), (2, 58.))]


def test_a_cell_may_hold_anything():
    text = table(['a|b', 'c'], [['x\n# y', '| z']])
    assert text.splitlines() == [
        r'| a\|b | c |', '| --- | --- |', r'| x # y | \| z |']


def test_the_result_table_has_the_papers_form():
    found = cells(result_table(
        THREE + SE, methods_of('se', 'plain', 'stepnet', paper='x'),
        ['plain', 'se'], {'x': '94.26'}.get))
    assert list(found) == ['se', 'plain', 'stepnet']  # the file's order
    assert found['se'] == {
        'method': 'se', 'n': '3', 'last epoch': '57.00 ± 4.58',
        'best epoch': '58.00 ± 4.58',
        'last, less `plain`': '+2.00 [−0.48, +4.48]', 'last, less `se`': '',
        'mean TNS': '0.500 ± 0.000', 'mean NSI': '1.000 ± 0.000',
        'processor time': '1.0 min', 'paper': '94.26'}
    assert found['plain']['last, less `plain`'] == ''
    assert found['plain']['last, less `se`'] == '−2.00 [−4.48, +0.48]'
    row = found['stepnet']
    assert (row['n'], row['last epoch'], row['mean TNS'], row['paper']) == (
        '0 of 3', 'not yet run', '', '94.26')


def test_a_study_that_is_half_done():
    records = [THREE[0], made_run('se', 1, 52.), diverged_run('se', 2),
               *(diverged_run('sem', s) for s in range(3)),
               made_run('one', 0, 53.25, stiffness={})]
    found = cells(result_table(
        records, methods_of('plain', 'se', 'sem', 'one'), ['plain'],
        {}.get))
    assert found['plain']['n'] == '1 of 3'
    assert found['plain']['last epoch'] == '50.00 (1 run)'
    assert found['se']['n'] == '1 of 3, 1 diverged'
    assert found['se']['last, less `plain`'] == 'no common seed'
    assert found['sem']['n'] == '0 of 3, 3 diverged'
    assert found['sem']['last epoch'] == 'diverged'
    assert found['one']['last, less `plain`'] == '+3.25 (1 seed)'
    assert found['one']['mean TNS'] == 'not measured'
    assert all(row['paper'] == 'none' for row in found.values())


def test_a_method_is_compared_with_a_baseline_of_its_own():
    plain, se, other = methods_of('plain', 'se', 'other')
    methods = [plain, replace(se, baseline='plain'),
               replace(other, baseline='gone')]
    found = cells(result_table(THREE + SE, methods, [], {}.get))
    assert [row['last, less its own baseline'] for row in found.values()] == [
        '', '`plain`: +2.00 [−0.48, +4.48]', '']


def test_runs_made_again_elsewhere_count(study):
    again = [replace(r, machine='two', last=r.last + 1) for r in THREE]
    records = [*THREE, *again, *SE]
    found = cells(result_table(records, study.methods, ['plain', 'se'],
                               {}.get))
    assert (found['plain']['n'], found['se']['n']) == ('6', '3')
    assert found['plain']['last epoch'] == '55.50 ± 4.51'
    assert found['se']['last, less `plain`'] == '+2.00 [−0.48, +4.48]'
    assert found['plain']['last, less `se`'] == '−2.00 [−4.48, +0.48]'
    elsewhere = cells(result_table([*again, *SE], study.methods, ['plain'],
                                   {}.get))
    assert elsewhere['se']['last, less `plain`'] == '+1.00 [−1.48, +3.48] †'


def test_a_network_of_two_machines_is_one_seed_in_the_ablation():
    runs = [replace(made_run('se', seed, steps=made_steps(
        50., 50. - less)), machine=machine) for seed, machine, less in (
            (0, 'one', 1.), (0, 'two', 3.), (1, 'one', 4.))]
    found = cells(ablation_table(runs, methods_of('se')))['se']
    # Of 2 and 4, by scipy's ttest_1samp(...).confidence_interval().
    assert found['change per channel'] == '−3.00 [−15.71, +9.71]'
    assert found['n'] == '3'


def test_the_table_of_steps_held_fixed():
    records = [
        made_run('plain'), diverged_run('se'),
        *(made_run('se', s, steps=made_steps(50. + s, 49. - s, None, .1 * s))
          for s in (1, 2)),
        made_run('eca', 0, steps=made_steps(per_block=40.))]
    found = cells(ablation_table(records, methods_of('plain', 'se', 'eca')))
    assert list(found) == ['se', 'eca']
    assert found['se'] == {
        'method': 'se', 'n': '2', 'as trained': '51.50 ± 0.71',
        'fixed per channel': '47.50 ± 0.71',
        'change per channel': '−4.00 [−16.71, +8.71]',
        'fixed per block': '–', 'change per block': '–',
        'mean Δt': '0.150 ± 0.071', 'SD over images': '0.010 ± 0.000',
        'SD over positions': '0.000 ± 0.000',
        'SD over channels': '0.020 ± 0.000'}
    assert found['eca']['change per block'] == '−10.00 (1 seed)'


def test_stiffness_by_definition_and_stage():
    records = [made_run('se', s, 50., tns=1. + s, step=.5) for s in (0, 1, 2)]
    found = cells(stiffness_table(records, methods_of('se', 'eca')))
    assert list(found) == ['se'] and len(found['se']) == 10
    assert found['se']['mean TNS, residual'] == '2.000 ± 1.000'
    assert found['se']['median TNS, residual'] == '1.000 ± 0.500'
    assert found['se']['mean NSI, residual'] == '4.000 ± 2.000'
    assert found['se']['mean TNS, output'] == '0.800 ± 0.400'
    assert found['se']['mean TNS, update'] == '1.000 ± 0.500'
    found = cells(stage_table(
        [*records, made_run('plain')], methods_of('plain', 'se')))
    assert found['se'] == {
        'method': 'se', 'Δt, stage 1': '0.500 ± 0.000',
        'Δt, stage 2': '0.250 ± 0.000', 'NSI, stage 1': '3.000 ± 1.500',
        'NSI, stage 2': '7.000 ± 3.500'}
    assert found['plain']['Δt, stage 1'] == 'none'
    assert found['plain']['NSI, stage 1'] == '1.500 (1 run)'


def test_what_was_measured_and_is_not_finite_is_a_dash():
    lost = measured_as(THREE[0], tns=None, nsi=None)
    row = cells(stiffness_table([lost], methods_of('plain')))['plain']
    assert row['mean TNS, residual'] == row['mean NSI, update'] == '–'
    assert row['median TNS, residual'] == '0.500 (1 run)'
    lost = measured_as(THREE[0], blocks=NO_NSI)
    row = cells(stage_table([lost], methods_of('plain')))['plain']
    assert (row['NSI, stage 1'], row['Δt, stage 1']) == ('–', 'none')


@pytest.mark.long
def test_correlations_in_words():
    found = cells(correlation_table(residual_only(made_study(4, 2))))
    text = found['mean TNS, residual']['over method means']
    assert text.startswith('τ −1.00 [−1.00, −1.00], p 0.083; ρ −1.00 [')
    assert cells(epoch_table(made_study()))['mean TNS'] == {
        '': 'mean TNS', 'mean over runs': 'τ −1.00 [−1.00, −1.00], p < 0.001',
        'runs': '15'}
    few = cells(correlation_table(THREE[:1]))['mean TNS, output']
    assert few['over all runs'] == 'none: needs 3 runs, has 1'


@pytest.fixture
def study(tmp_path):
    (tmp_path / 'config.py').write_text(
        "train_cfg = dict(max_epochs=100)\n"
        "model = dict(backbone=dict(depth=164))\n"
        "optim_wrapper = dict(optimizer=dict(type='SGD', lr=.1))\n"
        "train_dataloader = dict(batch_size=8,\n"
        "    dataset=dict(type='FolderCIFAR10',\n"
        "    pipeline=[dict(type='PackInputs')]))\n")
    (tmp_path / 'small.py').write_text(
        '"""What a study asks."""\n'
        "methods = {m: dict(config='config.py') for m in ('plain', 'se')}\n"
        "seeds = [0, 1, 2]\n"
        "options = {'train_cfg.max_epochs': 4, 'model.backbone.depth': 20,\n"
        "    'new.key': 1, 'train_dataloader.dataset.pipeline':\n"
        "    [dict(type='Resize', scale=16), dict(type='PackInputs')]}\n")
    return read_study(tmp_path / 'small.py')


def with_settings(study, *records):
    return [replace(record, settings=study.settings) for record in records]


def limits_of(study, records):
    return '\n'.join(limits([study], records, FirstConfig.read([study])))


def page(study, records):
    return study_page([study], records, {}.get, ['one', 'two'], {})


def test_the_setting_is_of_the_records_and_the_study_file(study):
    records = with_settings(
        study, *THREE, made_run('se', 0, commit='def', versions=dict(
            torch='2.1', extra='1'), date='2026-11-25'))
    flat = ' '.join(page(study, records).split())
    for part in ('4 of 6 runs of 2 methods, 4 epochs, 200,000 images a run',
                 '`train_cfg.max_epochs` 4 (was 100)',
                 '`new.key` 1 (was not there)', 'torch 2.0 / 2.1, extra '
                 'absent / 1', 'abc / def', '2026-11-23 to 2026-11-25'):
        assert part in flat
    assert 'other settings' not in flat
    assert 'other settings' in page(study, [made_run()])


def test_runs_of_methods_that_no_study_file_has_are_named_alone(study):
    records = with_settings(study, *THREE)
    more = with_settings(study, made_run('other', 0, 99., date='2030-01-01'))
    text = page(study, records + more)
    assert 'other' in text
    assert text.replace(' Run, but in no study file: other.', '') == page(
        study, records)


def test_methods_on_different_machines_are_named(study):
    one = with_settings(study, *THREE)
    assert 'different machines' not in limits_of(study, one)
    text = limits_of(study, [*one, *(replace(r, machine='two') for r in SE)])
    assert f'({THREE[0].machine}: plain; two: se)' in ' '.join(text.split())


def test_limits_are_of_the_facts(study):
    records = with_settings(
        study, *THREE, *SE[:2], diverged_run('se', 2), made_run('other'))
    records[0].commit = 'abc-dirty'
    text = limits_of(study, records)
    for part in ('in no study file: other.', 'se, seed 2',
                 'Over 2 seeds a 95 % interval reaches 9.0 standard',
                 '± 6.35', "4 epochs of the config's 100",
                 'images of 16 px and depth 20', '1 of 7'):
        assert part in text
    assert 'No method has two seeds' in limits_of(study, THREE[:1])


def measured_as(record, **changes):
    return replace(record, stiffness={
        name: {**measurement, **changes}
        for name, measurement in record.stiffness.items()})


FEW = residual_only(THREE)
NO_NSI = [dict(stage=1, nsi=None, step=None)]
ODD = dict(
    nothing=[],
    of_no_method=[made_run('other')],
    diverged=[diverged_run('plain'), diverged_run('se')],
    other_definitions=[FEW[0], replace(FEW[1], stiffness=dict(
        output=THREE[1].stiffness['output']))],
    some_blocks=[FEW[0], measured_as(FEW[1], blocks=[]),
                 measured_as(FEW[2], blocks=NO_NSI)],
    nothing_finite=[measured_as(
        record, tns=None, tns_median=None, nsi=None, samples=None, lost=None,
        blocks=NO_NSI) for record in FEW],
    nothing_logged=[replace(record, epochs=[dict(epoch=i) for i in (3, 1)])
                    for record in FEW])


@pytest.mark.parametrize('name', ODD)
def test_odd_records_have_a_page_and_what_figures_they_give(study, name):
    pytest.importorskip('matplotlib')
    assert '## What cannot be concluded' in page(study, ODD[name])
    found = study_figures(ODD[name], ['plain', 'se'])
    assert bool(found) == (name in (
        'other_definitions', 'some_blocks', 'nothing_finite',
        'nothing_logged'))


def test_a_config_that_went_wrong_since(study):
    study.methods[0].config.write_text("_base_ = 'gone.py'")
    with pytest.raises(ValueError, match='small.py: methods.plain: .*config'):
        page(study, THREE)


def test_images_of_an_epoch():
    assert [images_per_epoch(dict(type='CIFAR10', **own)) for own in (
        {}, dict(indices=7), dict(indices=[1, 5]))] == [50_000, 7, 2]
    assert images_per_epoch(dict(type='Coco')) is None


@pytest.fixture
def report(monkeypatch, capsys):
    """report('study_file.py', ...) -> what was printed"""
    def report(*arguments):
        monkeypatch.setattr(sys, 'argv', ['report.py', *map(str, arguments)])
        try:
            runpy.run_path(str(ROOT / 'tools/studies/report.py'),
                           run_name='__main__')
        except SystemExit as end:
            assert not end.code
        return capsys.readouterr().out

    return report


@pytest.mark.long
def test_the_tool_writes_the_same_bytes_again(report, study, tmp_path,
                                              monkeypatch):
    pytest.importorskip('matplotlib')
    monkeypatch.chdir(tmp_path)
    for record in residual_only(with_settings(study, *TWO)):
        append_record(tmp_path / 'results/small.jsonl', record)
    command = 'small.py', '--out', 'docs/a_page.md'
    report(*command)
    first = {path: path.read_bytes() for path in Path('docs').rglob('*.*')}
    text = Path('docs/a_page.md').read_text()
    links = re.findall(r'\]\((figures/a_page_\w+\.png)\)', text)
    assert len(links) == 5 and len(first) == 6
    assert all((Path('docs') / link).is_file() for link in links)
    report(*command)
    assert first == {p: p.read_bytes() for p in Path('docs').rglob('*.*')}
    assert report(*command, '--check') == ''
    Path('docs/a_page.md').write_text(text.replace('# a_page', '# another'))
    with pytest.raises(AssertionError):
        report(*command, '--check')
    assert Path('docs/a_page.md').read_text().startswith('# another')
    records = Path('results/small.jsonl').rename('docs/records.md')
    before = records.read_text()
    with pytest.raises(AssertionError):
        report('small.py', '--records', records, '--out', 'docs/records')
    assert records.read_text() == before


@pytest.mark.long
def test_the_papers_figures_that_study_files_name_are_there(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'tools/studies'))
    from report import paper_figure
    names = {method.paper for path in ROOT.glob('configs/studies/*.py')
             for method in read_study(path).methods} - {None}
    assert 'resnet164_se_cifar10' in names
    figures = {name: paper_figure(name) for name in names}
    assert figures['resnet164_se_cifar10'] == 'top-1 94.26 ± 0.14 %, 5 runs'
    assert None not in figures.values()


def test_methods_of_studies_that_compare_are_reported_together(
        report, study, tmp_path, capsys):
    (tmp_path / 'more.py').write_text(
        "_base_ = 'small.py'\nmethods = dict(_delete_=True, "
        "eca=dict(config='config.py'), plain=dict(config='config.py'))\n")
    files = [tmp_path / f'{name}.jsonl' for name in ('small', 'more')]
    for path, record in zip(files, (THREE[0], made_run('eca', 0))):
        append_record(path, with_settings(study, record)[0])
    command = (tmp_path / 'small.py', tmp_path / 'more.py', '--records',
               *files)
    out = report(*command)
    assert '# small, more' in out and out.count('| plain | 1 of 3') == 1
    assert re.search(r'\| se \|.*\n\| eca \| 1 of 3', out)
    assert 'other settings' not in out
    out = report(*command, '--methods', 'plain', 'eca')
    assert '| eca | 1 of 3' in out and '| se |' not in out
    with pytest.raises(AssertionError):
        report(*command, '--methods', 'sem')
    assert '--methods' in capsys.readouterr().err
