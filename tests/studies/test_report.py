"""Tables, the page and `tools/study.py report`."""
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
from stepnet_mm.studies.records import append_record, read_records
from stepnet_mm.studies.study import (
    StudyMethod,
    baselines_of,
    read_study,
)
from stepnet_mm.studies.tables import (
    ablation_table,
    correlation_table,
    epoch_table,
    result_table,
    stage_table,
    stiffness_table,
    table,
)
from stepnet_mm.visualization.study_figures import write_figures

pytestmark = pytest.mark.core

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


def test_only_baselines_that_are_methods_have_a_column(study):
    text = page(study, [])
    assert 'less `plain` | last, less `se` | mean TNS' in text
    other = replace(study, baselines=['gone', 'se', 'plain'])
    assert 'less `se` | last, less `plain` | mean TNS' in page(other, [])
    alone = replace(study, baselines=['plain'])
    assert baselines_of([study, alone]) == ['plain']  # the usual ones go
    assert baselines_of([alone, other]) == ['plain', 'se']


def test_a_method_is_compared_with_a_baseline_of_its_own():
    plain, se, other = methods_of('plain', 'se', 'other')
    methods = [plain, replace(se, baseline='plain'),
               replace(other, baseline='gone')]
    found = cells(result_table(THREE + SE, methods, [], {}.get))
    assert [row['last, less its own baseline'] for row in found.values()] == [
        '', '`plain`: +2.00 [−0.48, +4.48]', '']
    without = result_table(THREE, [plain, methods[2]], [], {}.get)
    assert 'baseline' not in without
    again = result_table(THREE + SE, methods, ['plain'], {}.get)
    assert 'less `plain`' in again and 'baseline' not in again


def test_runs_made_again_elsewhere_count(study):
    again = [replace(r, machine='two', last=r.last + 1) for r in THREE]
    records = with_settings(study, *THREE, *again, *SE)
    text = ' '.join(page(study, records).split())
    found = cells(result_table(records, study.methods, ['plain', 'se'],
                               {}.get))
    assert (found['plain']['n'], found['se']['n']) == ('6', '3')
    assert found['plain']['last epoch'] == '55.50 ± 4.51'
    assert found['se']['last, less `plain`'] == '+2.00 [−0.48, +4.48]'
    assert found['plain']['last, less `se`'] == '−2.00 [−4.48, +0.48]'
    assert '9 of 9 runs' in text and 'Not all seeds' not in text
    assert ' †' not in text.replace('have †', '')
    elsewhere = [*again, *records[6:]]
    text = ' '.join(page(study, elsewhere).split())
    assert '+1.00 [−1.48, +3.48] †' in text
    assert 'where they have †, no machine ran both' in text
    some = page(study, [again[0], *records[:1], *records[6:]])
    assert '| plain | 2 of 4 |' in some and '5 of 7 runs' in some
    one_method = page(study, with_settings(study, *THREE, *again))
    assert 'Over 3 seeds a 95 % interval reaches 2.5' in one_method


def test_a_network_of_two_machines_is_one_seed_in_the_ablation():
    runs = [replace(made_run('se', seed, steps=made_steps(
        50., 50. - less)), machine=machine) for seed, machine, less in (
            (0, 'one', 1.), (0, 'two', 3.), (1, 'one', 4.))]
    found = cells(ablation_table(runs, methods_of('se')))['se']
    # Of 2 and 4, by scipy's ttest_1samp(...).confidence_interval().
    assert found['change per channel'] == '−3.00 [−15.71, +9.71]'
    assert found['n'] == '3'


def test_a_metric_below_one_has_more_places():
    records = [made_run('plain', s, v, best=v)
               for s, v in ((0, .3612), (1, .3652))]
    row = cells(result_table(
        records, methods_of('plain'), ['plain'], {}.get))['plain']
    assert row['last epoch'] == '0.3632 ± 0.0028'


def test_the_table_of_steps_held_fixed(study):
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
    text = page(study, records)
    assert ablation_table(records, methods_of('plain', 'se')) in text
    assert 'held fixed' not in page(study, records[:1])


def test_stiffness_by_definition_and_stage():
    records = [made_run('se', s, 50., tns=1. + s, step=.5) for s in (0, 1, 2)]
    found = cells(stiffness_table(records, methods_of('se', 'eca')))
    assert found == {'se': {
        'method': 'se',
        'mean TNS, residual': '2.000 ± 1.000',
        'median TNS, residual': '1.000 ± 0.500',
        'mean NSI, residual': '4.000 ± 2.000',
        'mean TNS, output': '0.800 ± 0.400',
        'median TNS, output': '0.400 ± 0.200',
        'mean NSI, output': '4.000 ± 2.000',
        'mean TNS, update': '1.000 ± 0.500',
        'median TNS, update': '0.500 ± 0.250',
        'mean NSI, update': '4.000 ± 2.000'}}
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


def test_correlations_say_what_they_lack():
    found = cells(correlation_table(THREE[:1]))
    assert len(found) == 9
    assert found['mean TNS, output'] == {
        '': 'mean TNS, output', 'over all runs': 'none: needs 3 runs, has 1',
        'over method means': 'none: needs 3 methods, has 1',
        'within methods, over runs':
        'none: needs 3 methods with several seeds, has 0'}
    assert cells(epoch_table([]))['mean NSI']['mean over runs'] == (
        'none: needs 3 runs, has 0')


def test_correlations_in_words():
    found = cells(correlation_table(residual_only(made_study(4, 2))))
    text = found['mean TNS, residual']['over method means']
    assert text.startswith('τ −1.00 [−1.00, −1.00], p 0.083; ρ −1.00 [')
    assert cells(epoch_table(made_study()))['mean TNS'] == {
        '': 'mean TNS', 'mean over runs': 'τ −1.00 [−1.00, −1.00], p < 0.001',
        'runs': '15'}


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


def page(study, records, figures=None):
    return study_page([study], records, {}.get, ['one', 'two'], figures or {})


def test_the_setting_is_of_the_records_and_the_study_file(study):
    records = with_settings(
        study, *THREE, made_run('se', 0, commit='def', versions=dict(
            torch='2.1', extra='1'), date='2026-11-25'))
    text = page(study, records, {'A caption': 'figures/a.png'})
    flat = ' '.join(text.split())
    for part in (
            '# small', 'What a study asks.', 'Data: FolderCIFAR10.',
            '4 of 6 runs of 2 methods, 4 epochs, 200,000 images a run; 0.1 '
            'hours of processor time.',
            '`train_cfg.max_epochs` 4 (was 100), `model.backbone.depth` 20 '
            '(was 164), `new.key` 1 (was not there), '
            '`train_dataloader.dataset.pipeline` (Resize, PackInputs).',
            'Batch size: 8; optimizer: SGD, lr 0.1.',
            'the same 100 images', 'Versions: torch 2.0 / 2.1, extra absent '
            '/ 1.', 'Commits: abc / def.', '2026-11-23 to 2026-11-25.',
            '![A caption](figures/a.png)'):
        assert part in flat
    assert '```bash\none\ntwo\n```' in text
    assert 'other settings' not in flat


def test_records_of_a_study_file_that_changed(study):
    flat = ' '.join(page(study, [made_run()]).split())
    assert 'of other settings than the study file has now' in flat
    assert '4 epochs a run' in flat  # of how many images nobody knows


def test_methods_of_different_length(study):
    text = page(study, with_settings(
        study, THREE[0], made_run('se', epochs=8), diverged_run('se', 1)))
    assert '3 of 6 runs of 2 methods, 4 or 8 epochs a run; ' in (
        ' '.join(text.split()))


def test_runs_of_methods_that_no_study_file_has_are_named_alone(study):
    records = with_settings(study, *THREE)
    more = with_settings(study, made_run('other', 0, 99., date='2030-01-01'))
    text = page(study, records + more)
    assert text.replace(' Run, but in no study file: other.', '') == page(
        study, records)


def test_a_page_without_a_record(study):
    text = page(study, [])
    assert text.count('not yet run') == 2 and '## Stiffness' not in text
    assert 'Not yet run: plain, se.' in text


@pytest.mark.parametrize('where, name', [
    (dict(device='a GPU'), 'a GPU'), (dict(machine='another'), 'another')])
def test_methods_on_different_machines_have_a_sentence(study, where, name):
    one = with_settings(study, *THREE)
    assert 'different machines' not in limits_of(study, one)
    text = limits_of(study, [*one, *(replace(r, **where) for r in SE)])
    assert (f'different machines ({THREE[0].machine}: plain; {name}: se)'
            in ' '.join(text.split()))


def test_limits_are_of_the_facts(study):
    records = with_settings(
        study, *THREE, *SE[:2], diverged_run('se', 2), made_run('other'))
    records[0].commit = 'abc-dirty'
    text = limits_of(study, records)
    for part in (
            'Run, but in no study file: other.', 'se, seed 2',
            'Over 2 seeds a 95 % interval reaches 9.0 standard',
            'Not shown to differ from `plain` (the interval has 0 in it): se, '
            'of 1 compared; '
            'half the intervals are wider than ± 6.35.',
            "4 epochs of the config's 100",
            'images of 16 px and depth 20', '`FolderCIFAR10` reads',
            'differ from their commit: 1 of 7.'):
        assert part in text
    whole = limits_of(study, with_settings(
        study, *(made_run('plain', s, 50. + s, epochs=100, dataset='CIFAR10')
                 for s in range(5))))
    assert 'of the config' not in whole and 'Folder' not in whole
    assert 'Over 5 seeds' in whole and 'reaches 1.2' in whole
    assert 'Not all seeds' not in text  # that of se diverged
    few = limits_of(study, THREE[:1])
    assert 'No method has two seeds' in few
    assert 'Not all seeds: plain (1 of 3).' in few


def test_what_a_study_left_as_it_was_is_not_called_small(study, tmp_path):
    path = tmp_path / 'config.py'
    path.write_text(path.read_text().replace('164', '20').replace(
        'pipeline=[', "pipeline=[dict(type='Resize', scale=16), "))
    assert 'the networks are not' not in limits_of(study, THREE)


def test_processor_time_that_nobody_measured_is_not_told(study):
    records = [replace(record, cpu_seconds=0.) for record in THREE]
    text = page(study, with_settings(study, *records))
    row = cells(result_table(
        records, methods_of('plain'), ['plain'], {}.get))['plain']
    assert row['processor time'] == 'not measured'
    assert 'rocessor time is' not in text and 'hours' not in text
    assert 'not of what Slurm trained' in ' '.join(page(study, THREE).split())


def measured_as(record, **changes):
    return replace(record, stiffness={
        name: {**measurement, **changes}
        for name, measurement in record.stiffness.items()})


FEW = residual_only(THREE)
NO_NSI = [dict(stage=1, nsi=None, step=None)]
ODD = dict(
    one=[FEW[0]],
    of_no_method=[made_run('other')],
    diverged=[diverged_run('plain'), diverged_run('se')],
    diverged_but_measured=[made_run('se', last=None, diverged=True, epochs=0)],
    no_epochs=[made_run('plain', s, epochs=0) for s in range(3)],
    no_stiffness=[made_run('plain', s, stiffness={}) for s in range(3)],
    other_definitions=[FEW[0], replace(FEW[1], stiffness=dict(
        output=THREE[1].stiffness['output']))],
    no_blocks=[measured_as(record, blocks=[]) for record in FEW],
    some_blocks=[FEW[0], measured_as(FEW[1], blocks=[]),
                 measured_as(FEW[2], blocks=NO_NSI)],
    blocks_alone=[replace(record, stiffness=dict(residual=dict(
        blocks=NO_NSI))) for record in FEW],
    nothing_finite=[measured_as(
        record, tns=None, tns_median=None, nsi=None, samples=None, lost=None,
        blocks=NO_NSI) for record in FEW],
    nothing_logged=[replace(record, epochs=[dict(epoch=i) for i in (3, 1)])
                    for record in FEW],
    no_best=[replace(record, best=None) for record in FEW],
    empty_texts=[made_run(dataset='', metric='', commit='', versions={},
                          device='', machine='', date='')])


@pytest.mark.parametrize('name', ODD)
def test_odd_records_have_a_page_and_what_figures_they_give(
        study, tmp_path, name):
    pytest.importorskip('matplotlib')
    path = tmp_path / 'odd.jsonl'
    for record in ODD[name]:
        append_record(path, record)
    records = read_records(path)
    figures = write_figures(records, ['plain', 'se'], tmp_path / 'page')
    assert '## What cannot be concluded' in page(study, records, figures)
    assert all((tmp_path / link).is_file() for link in figures.values())


@pytest.mark.parametrize('text', [
    "_base_ = 'gone.py'", 'model = ', "model = dict(backbone='ResNet')"])
def test_a_config_that_went_wrong_since(study, text):
    study.methods[0].config.write_text(text)
    with pytest.raises(ValueError, match='small.py: methods.plain: expected '
                       'a config and options that fit it, got .*config.py'):
        page(study, THREE)


@pytest.mark.parametrize('dataset, count', [
    (dict(type='FolderCIFAR10'), 50_000), (dict(type='CIFAR100'), 50_000),
    (dict(type='CIFAR10', indices=7), 7),
    (dict(type='CIFAR10', indices=[1, 5]), 2), (dict(type='Coco'), None)])
def test_images_of_an_epoch(dataset, count):
    assert images_per_epoch(dataset) == count


@pytest.fixture
def report(monkeypatch, capsys):
    """report('study.py', ...) -> what was printed"""
    monkeypatch.syspath_prepend(str(ROOT / 'tools'))

    def report(*arguments):
        monkeypatch.setattr(sys, 'argv', ['study.py', 'report', *map(
            str, arguments)])
        try:
            runpy.run_path(str(ROOT / 'tools/study.py'), run_name='__main__')
        except SystemExit as end:
            assert not end.code
        return capsys.readouterr().out

    return report


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
    assert text.startswith('# a_page\n')
    links = re.findall(r'\]\((figures/a_page_\w+\.png)\)', text)
    assert len(links) == 5 and len(first) == 6
    assert all((Path('docs') / link).is_file() for link in links)
    assert ('python tools/study.py run small.py\n'
            'python tools/study.py report small.py --out docs/a_page\n'
            ) in text
    report(*command)
    assert first == {p: p.read_bytes() for p in Path('docs').rglob('*.*')}
    assert report(*command, '--check') == ''
    Path('docs/a_page.md').write_text(text.replace('# a_page', '# another'))
    with pytest.raises(AssertionError):
        report(*command, '--check')
    assert Path('docs/a_page.md').read_text().startswith('# another')


def test_a_page_to_check_is_named(report, study, capsys):
    with pytest.raises(AssertionError):
        report(study.path, '--check')
    assert '--check: expected --out PAGE' in capsys.readouterr().err


def test_the_tool_prints_what_a_running_study_has(report, study, tmp_path,
                                                  monkeypatch):
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    assert 'not yet run' in report(study.path)
    path = tmp_path / 'cut.jsonl'
    append_record(path, with_settings(study, THREE[0])[0])
    with open(path, 'a') as file:
        file.write('{"format": "stepnet')
    out = report(study.path, '--records', path)
    assert '50.00 (1 run)' in out and str(tmp_path) not in out
    assert 'report small.py --records cut.jsonl' in out
    assert not list(Path().iterdir())


def test_the_papers_figures_that_study_files_name_are_there(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'tools'))
    from make_configs import paper_figure
    names = {method.paper for path in ROOT.glob('configs/studies/*.py')
             for method in read_study(path).methods} - {None}
    assert 'resnet164_se_cifar10' in names
    for name in names:
        paper_figure(name)


def test_studies_that_compare_are_reported_together(report, study, tmp_path):
    (tmp_path / 'more.py').write_text(
        "_base_ = 'small.py'\nmethods = dict(_delete_=True, "
        "eca=dict(config='config.py'), plain=dict(config='config.py'))\n")
    for name, record in (('small', THREE[0]), ('more', made_run('eca', 0))):
        append_record(tmp_path / f'{name}.jsonl',
                      with_settings(study, record)[0])
    out = report(tmp_path / 'small.py', tmp_path / 'more.py', '--records',
                 tmp_path / 'small.jsonl', tmp_path / 'more.jsonl')
    assert '# small, more' in out and out.count('| plain | 1 of 3') == 1
    assert re.search(r'\| se \|.*\n\| eca \| 1 of 3', out)
    assert 'other settings' not in out


def test_some_methods_are_reported_alone(report, study, tmp_path, capsys):
    (tmp_path / 'more.py').write_text(
        "_base_ = 'small.py'\nmethods = dict(_delete_=True, "
        "eca=dict(config='config.py'))\n")
    records = tmp_path / 'both.jsonl'
    for record in with_settings(study, THREE[0], SE[0], made_run('eca', 1)):
        append_record(records, record)
    paths = tmp_path / 'small.py', tmp_path / 'more.py'
    out = report(*paths, '--methods', 'plain', 'eca', '--records', records)
    assert '# small, more' in out and '2 of 6 runs of 2 methods' in out
    assert '| eca | 1 of 3' in out and '| se |' not in out
    assert 'less `se`' not in out and 'in no study file' not in out
    assert 'report small.py more.py --methods plain eca --records' in out
    out = report(*paths, '--methods', 'eca', '--records', records)
    assert out.startswith('# more\n') and 'run small.py' not in out
    with pytest.raises(AssertionError):
        report(*paths, '--methods', 'sem', '--records', records)
    assert re.search(r"--methods: expected some of \['plain', 'se', 'eca'\], "
                     r"got \['sem'\]", capsys.readouterr().err)
