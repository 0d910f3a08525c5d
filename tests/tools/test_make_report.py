import json
import math

import pytest
import torch

from stepnet_mm.stiffness import RecordHeader, append_rows, begin_record

pytest.importorskip('matplotlib')
pytestmark = pytest.mark.core

TOOL = 'analysis/make_report'


def write_record(path, samples=8, rows=8, **changes):
    fields = dict(
        definition='residual', blocks=['layer1.1', 'layer1.2', 'layer2.1'],
        stage=[1, 1, 2], position=[1, 2, 1], samples=samples,
        meta=dict(name=path.stem))
    begin_record(path, RecordHeader(**{**fields, **changes}))
    nsi = torch.rand(rows, 3) + .1
    append_rows(path, 0, nsi, torch.full_like(nsi, math.nan))
    return path


@pytest.fixture
def work_dir(tmp_path):
    folder = tmp_path / 'resnet20_plain'
    path = folder / '20250101_000000/vis_data/scalars.json'
    path.parent.mkdir(parents=True)
    lines = [
        {'step': s, 'stiffness/tns': 1. / s, 'stiffness/nonfinite': 0}
        for s in (1, 2, 3)
    ]
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    return folder


def test_report_of_a_work_dir(tool, work_dir, capsys):
    for name in ('last', 'best'):
        write_record(work_dir / f'{name}.jsonl')
    tool(TOOL, work_dir)
    page = (work_dir / 'report.html').read_text()
    assert '<h1>Neural stiffness of resnet20_plain</h1>' in page
    assert '<h3>best</h3>' in page and '<h3>last</h3>' in page
    assert 'While training' in page and 'δ(0.5, 0)' in page
    assert str(work_dir / 'report.html') in capsys.readouterr().out


def test_records_of_one_name_are_told_apart(tool, work_dir):
    for name in ('start', 'last'):
        write_record(work_dir / f'{name}.jsonl', meta=dict(name='r20'))
    write_record(work_dir / 'other.jsonl')
    tool(TOOL, work_dir)
    page = (work_dir / 'report.html').read_text()
    for name in ('r20, start.jsonl', 'r20, last.jsonl', 'other'):
        assert f'<h3>{name}</h3>' in page


def test_records_of_one_definition_are_shown(tool, work_dir, capsys):
    write_record(work_dir / 'a.jsonl')
    write_record(work_dir / 'b.jsonl', definition='update')
    tool(TOOL, work_dir)
    page = (work_dir / 'report.html').read_text()
    assert '<h3>a</h3>' in page and '<h3>b</h3>' not in page
    assert 'NSI: residual; of others, not shown: b.jsonl' in (
        capsys.readouterr().out)
    whole = (work_dir / 'b.jsonl').read_text()
    (work_dir / 'b.jsonl').write_text(whole[:whole.rindex('\n', 0, -1) + 1])
    tool(TOOL, work_dir)  # a measurement that was cut, and is not shown
    (work_dir / 'b.jsonl').write_text(whole)
    tool(TOOL, work_dir, '--definition', 'update')
    assert '<h3>b</h3>' in (work_dir / 'report.html').read_text()
    with pytest.raises(ValueError, match="plain: expected .*'output'.*resid"):
        tool(TOOL, work_dir, '--definition', 'output')


def test_options(tool, work_dir, tmp_path):
    record = write_record(tmp_path / 'elsewhere.jsonl')
    (work_dir / '20250101_000000/vis_data/scalars.json').unlink()
    tool(TOOL, work_dir, '--records', record, '--out', tmp_path / 'a.html',
         '--title', 'Mine', '--m1', 1, '--m2', .25)
    page = (tmp_path / 'a.html').read_text()
    assert '<h1>Mine</h1>' in page and '<h3>elsewhere</h3>' in page
    assert 'While training' not in page and 'δ(1, 0.25)' in page
    assert not (work_dir / 'report.html').exists()


def test_a_work_dir_without_a_record(tool, work_dir):
    with pytest.raises(FileNotFoundError,
                       match='resnet20_plain: expected a sti'):
        tool(TOOL, work_dir)


@pytest.mark.parametrize('changes, match', [
    (dict(samples=9), 'expected 9 samples, got 8'),
])
def test_a_report_that_fails_leaves_the_old_one(tool, work_dir, changes,
                                                match):
    write_record(work_dir / 'good.jsonl')
    tool(TOOL, work_dir)
    before = (work_dir / 'report.html').read_bytes()
    write_record(work_dir / 'bad.jsonl', **changes)
    with pytest.raises(ValueError, match=match):
        tool(TOOL, work_dir)
    assert (work_dir / 'report.html').read_bytes() == before


def test_a_negative_threshold(tool, work_dir):
    write_record(work_dir / 'good.jsonl')
    with pytest.raises(ValueError, match='m1: .*thresholds >= 0'):
        tool(TOOL, work_dir, '--m1', -1)
