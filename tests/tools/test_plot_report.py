import json

import pytest
import torch

pytest.importorskip('matplotlib')


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Pages without their pictures, which take long."""
    from stiffness_page import Picture
    monkeypatch.setattr(Picture, 'of', lambda figure: Picture('', 300))


@pytest.fixture
def write(write_record):
    """write('resnet20_plain/last') -> the path of a record"""

    def write(name, **changes):
        return write_record(
            name, torch.rand(8, 3) + .1, stage=[1, 1, 2], position=[1, 2, 1],
            blocks=['layer1.1', 'layer1.2', 'layer2.1'], **changes)

    return write


@pytest.fixture
def work_dir(tmp_path):
    folder = tmp_path / 'resnet20_plain'
    path = folder / '20250101_000000/vis_data/stiffness.json'
    path.parent.mkdir(parents=True)
    lines = [
        {'step': s, 'stiffness/tns': 1. / s, 'stiffness/nonfinite': 0}
        for s in (1, 2, 3)
    ]
    path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
    return folder


def test_records_of_one_definition_are_shown(tool, write, work_dir, capsys):
    for name in ('start', 'last'):
        write(f'{work_dir.name}/{name}', meta=dict(name='r20'))
    write(f'{work_dir.name}/b', definition='update')
    # A measurement that was cut, and is not shown.
    whole = (work_dir / 'b.jsonl').read_text()
    (work_dir / 'b.jsonl').write_text(whole[:whole.rindex('\n', 0, -1) + 1])
    tool('analysis/plot', 'report', work_dir)
    page = (work_dir / 'report.html').read_text()
    assert '<h1>Neural stiffness of resnet20_plain</h1>' in page
    assert 'While training' in page and 'δ(0.5, 0)' in page
    for name in ('r20, start.jsonl', 'r20, last.jsonl'):
        assert f'<h3>{name}</h3>' in page
    assert '<h3>b</h3>' not in page
    said = capsys.readouterr().out
    assert 'NSI: residual; of others, not shown: b.jsonl' in said
    with pytest.raises(SystemExit, match="plain: expected .*'output'.*resid"):
        tool('analysis/plot', 'report', work_dir, '--definition', 'output')


def test_a_record_from_elsewhere(tool, write, work_dir, tmp_path):
    tool('analysis/plot', 'report', work_dir, '--records', write('elsewhere'),
         '--out', tmp_path / 'a.html', '--title', 'Mine')
    page = (tmp_path / 'a.html').read_text()
    assert '<h1>Mine</h1>' in page and '<h3>elsewhere</h3>' in page
    assert not (work_dir / 'report.html').exists()


def test_a_report_that_fails_leaves_the_old_one(tool, write, work_dir):
    (work_dir / 'report.html').write_text('old')
    bad = write(f'{work_dir.name}/bad', samples=9)
    with pytest.raises(SystemExit, match='expected 9 samples, got 8'):
        tool('analysis/plot', 'report', work_dir)
    with pytest.raises(SystemExit, match='--out: expected a file that is not'):
        tool('analysis/plot', 'report', work_dir, '--out', bad)
    assert (work_dir / 'report.html').read_text() == 'old'
