import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from made_runs import made_run

from stepnet_mm.studies.records import append_record
from stepnet_mm.studies.study import read_study
from stepnet_mm.utils.files import differing_files

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make_results(load_tool):
    return load_tool('make_results')


@pytest.mark.long
def test_the_tables_that_are_committed_are_up_to_date(make_results):
    assert differing_files(make_results.pages()) == []


@pytest.fixture
def run(make_results, monkeypatch, tmp_path):
    """Run the tool on a repository of its own; the exit code."""
    (tmp_path / 'tools').symlink_to(ROOT / 'tools')
    monkeypatch.setattr(make_results, 'ROOT', tmp_path)

    def run(*arguments):
        monkeypatch.setattr('sys.argv', ['make_results.py', *arguments])
        try:
            make_results.main()
        except SystemExit as end:
            return end.code
        return 0

    return run


def write_study(folder, name, seeds=2, **methods):
    """A study file; with seeds also records, better for a longer name."""
    studies = folder / 'configs/studies'
    studies.mkdir(parents=True, exist_ok=True)
    (studies / 'config.py').write_text(
        "train_cfg = dict(max_epochs=4)\nmodel = dict()\n"
        "train_dataloader = dict(dataset=dict(type='FolderCIFAR10'))\n")
    rows = {method: dict(fields, config='config.py')
            for method, fields in methods.items()}
    path = studies / f'{name}.py'
    path.write_text(f'methods = {rows}\nseeds = [0, 1]')
    for method, seed in product(methods, range(seeds)):
        made = made_run(method, seed, 90. + seed + len(method),
                        len(method) + .1 * seed, study=name)
        append_record(folder / f'results/{name}.jsonl', replace(
            made, settings=read_study(path).settings,
            stiffness=dict(residual=made.stiffness['residual'])))


def test_a_line_of_results(run, tmp_path, capsys):
    write_study(tmp_path, 'made', se={})
    write_study(tmp_path, 'unmade', seeds=0, eca={})
    page = tmp_path / 'README.md'
    old = ('a\n<!-- last epoch: made+unmade se eca -->\nold\n<!-- end -->\nb\n'
           '<!-- last epoch: made se -->\n<!-- end -->\nc')
    page.write_text(old)
    assert run('--check') == 1 and page.read_text() == old
    assert capsys.readouterr().out == 'not up to date: README.md\n'
    assert run() == 0
    assert page.read_text() == '''a
<!-- last epoch: made+unmade se eca -->

| se | eca |
| --- | --- |
| 92.50 ± 0.71 (2 runs) | not yet run |

<!-- end -->
b
<!-- last epoch: made se -->

| se |
| --- |
| 92.50 ± 0.71 (2 runs) |

<!-- end -->
c'''
    assert run('--check') == 0


def filled(make_results, folder, comment):
    """The cells of the table that a comment asks for."""
    page = folder / 'page.md'
    page.write_text(f'{comment}\n<!-- end -->')
    text = make_results.with_tables(page)
    assert text.startswith(f'{comment}\n\n')
    assert text.endswith('\n\n<!-- end -->')
    return [line.strip('| ').split(' | ') for line in text.splitlines()[2:-2]]


def test_differences(make_results, run, tmp_path):
    write_study(tmp_path, 'first', plain={})
    write_study(tmp_path, 'second', se={}, stepnet=dict(baseline='se'))
    assert filled(
        make_results, tmp_path,
        '<!-- last epoch: first+second plain se stepnet less plain -->') == [
        ['method', 'n', 'last epoch', 'last, less `plain`',
         'last, less its own baseline'],
        ['---'] * 5,
        ['plain', '2', '95.50 ± 0.71'],
        ['se', '2', '92.50 ± 0.71', '−3.00 [−3.00, −3.00]'],
        ['stepnet', '2', '97.50 ± 0.71', '+2.00 [+2.00, +2.00]',
         '`se`: +5.00 [+5.00, +5.00]'],
    ]


@pytest.mark.long
def test_correlations(make_results, run, tmp_path):
    write_study(tmp_path, 'made', se={}, plain={}, stepnet={}, a_lower_one={})
    lower = tmp_path / 'results/made.jsonl'
    lower.write_text(re.sub(r'("last": )101\.', r'\g<1>1.', re.sub(
        r'("last": )102\.', r'\g<1>2.', lower.read_text())))

    def taus(words):
        head, line, *rows = filled(
            make_results, tmp_path, f'<!-- tau of TNS: made{words} -->')
        assert head == ['τ', '`residual`'] and line == ['---'] * 2
        return {scope: cell.split()[0] for scope, cell in rows}

    assert taus('')['over method means'] == '+0.00'
    better = {'over all runs': '+1.00', 'over method means': '+1.00',
              'within methods, over runs': '+1.00'}
    assert taus(' without a_lower_one') == better
    assert taus(' se plain stepnet') == better


@pytest.mark.parametrize('comment', [
    'last epoch: first plain less plian', 'tau of TNS: first without se'])
def test_a_table_of_methods_that_are_not_there(run, tmp_path, capsys, comment):
    write_study(tmp_path, 'first', plain={})
    write_study(tmp_path, 'second', se={}, stepnet={})
    page = tmp_path / 'README.md'
    page.write_text(f'<!-- {comment} -->\n<!-- end -->')
    assert run() == 2
    assert re.match(
        f'make_results.py: error: {page}: <!-- {comment} -->: expected '
        r"methods of \[.*\], got \['(se|plian)'\]", capsys.readouterr().err)


@pytest.mark.long
def test_reports_are_written_anew(run, tmp_path, capfd):
    pytest.importorskip('matplotlib')
    write_study(tmp_path, 'made', se={})
    page = tmp_path / 'docs/results/made.md'
    page.parent.mkdir(parents=True)
    page.write_text(
        'Written by `tools/studies/report.py` from the records of the runs; '
        'edits are lost.\n\n```bash\npython tools/studies/report.py '
        'configs/studies/made.py --out docs/results/made\n```')
    other = page.with_name('other.md')
    other.write_text('python tools/studies/report.py gone.py')
    assert run('--check') == 1 and '| se |' not in page.read_text()
    assert 'not up to date: docs/results/made.md' in capfd.readouterr().out
    assert not (page.parent / 'figures').exists()
    assert run() == 0 and '| se | 2 |' in page.read_text()
    assert len(list((page.parent / 'figures').iterdir())) == 4
    assert run('--check') == 0
    (tmp_path / 'results/made.jsonl').write_text('{}\n{}\n')
    assert run() == 2 and 'error' in capfd.readouterr().err
