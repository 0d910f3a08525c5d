import math
import re

import cv2
import pytest
import torch

from stepnet_mm.stiffness import (
    RecordHeader,
    append_rows,
    begin_record,
    total_neural_stiffness,
)

pytest.importorskip('matplotlib')
pytestmark = pytest.mark.core

TOOL = 'analysis/plot_stiffness'
STAGE, POSITION = [1, 1, 1, 2, 2], [1, 2, 3, 1, 2]
NSI = torch.rand(20, 5, generator=torch.Generator().manual_seed(0)) + .1
NSI[0, 2] = math.inf
STEP = 1 / (1 + NSI)


@pytest.fixture
def write(tmp_path):
    """write('SE_seed0', gates=False) -> the path of its record"""

    def write(name, gates=True, **changes):
        path = tmp_path / f'{name}.jsonl'
        fields = dict(
            definition='residual', blocks=[f'b{i}' for i in range(5)],
            stage=STAGE, position=POSITION, samples=20, meta=dict(name=name))
        begin_record(path, RecordHeader(**{**fields, **changes}))
        append_rows(path, 0, NSI, STEP if gates else STEP * math.nan)
        return path

    return write


@pytest.fixture
def run(tool, capsys):
    """run(record, ...) -> what it printed"""

    def run(*arguments):
        capsys.readouterr()
        tool(TOOL, *arguments)
        return capsys.readouterr().out

    return run


def files(folder):
    return sorted(path.name for path in folder.glob('*'))


def test_all_figures_of_seeds(run, write, tmp_path):
    out = run(write('SE_seed0'), write('SE_seed1'))
    folder = tmp_path / 'figures'
    assert files(folder) == [
        'depth.png', 'proportion.png', 'seeds.png', 'step_SE_seed0.png',
        'step_SE_seed1.png', 'survival.png', 'tns.png'
    ]
    for name in files(folder):
        assert str(folder / name) in out
        assert cv2.imread(str(folder / name)).std() > 5
    assert 'skipped' not in out


def test_table(run, write):
    out = run(write('SE'), '--figures', 'depth')
    tns = total_neural_stiffness(NSI[1:], STAGE)
    error = tns.std() / math.sqrt(19)
    row = re.search(r'^SE .*$', out, re.MULTILINE).group()
    assert row.split() == [
        'SE', '20', '1', 'residual', f'{tns.mean():.4g}', '±', f'{error:.2g}',
        f'{tns.median():.4g}', f'{tns.quantile(.95):.4g}'
    ]


def test_what_does_not_apply_is_skipped(run, write, tmp_path):
    out = run(write('plain', False), write('ECA', False), '--out',
              tmp_path / 'f', '--format', 'svg')
    assert files(tmp_path / 'f') == [
        'depth.svg', 'proportion.svg', 'survival.svg', 'tns.svg'
    ]
    assert re.findall(r'^(\w+): skipped, \w+', out, re.MULTILINE) == [
        'step', 'seeds'
    ]


def test_one_record_twice_is_no_two_seeds(run, write, tmp_path):
    record = write('SE')
    out = run(record, record, '--out', tmp_path / 'f', '--figures', 'tns')
    assert 'SE (1)' in out and 'SE (2)' in out
    assert ('seeds: skipped, it needs two or more records whose names differ '
            'only in _seedN') in run(record, record, '--out', tmp_path / 'f')


def test_one_record_has_no_other_to_compare_with(run, write, tmp_path):
    record = write('SE', False)
    out = run(record, '--out', tmp_path / 'f')
    assert 'tns: skipped, there is one record' in out
    run(record, '--out', tmp_path / 'f', '--figures', 'tns')
    assert (tmp_path / 'f/tns.png').exists()


def test_records_without_gates_beside_others(run, write, tmp_path):
    out = run(write('plain', False), write('SE'), '--out', tmp_path / 'f',
              '--figures', 'step')
    assert files(tmp_path / 'f') == ['step_SE.png']
    assert 'step: plain skipped, it has no known gate' in out


def test_names(run, write, tmp_path):
    out = run(write('a'), write('b'), '--names', 'My net', 'My net',
              '--figures', 'step')
    assert files(tmp_path / 'figures') == [
        'step_My_net_1.png', 'step_My_net_2.png'
    ]
    assert 'My net (2)' in out


def test_options_reach_the_figures(run, write, tmp_path):
    record, drawn = write('SE'), {}
    for i, options in enumerate([(), ('--m1', 0, 1, '--m2', 0, .5, 1),
                                 ('--blocks', 'b0', 'b4')]):
        run(record, '--out', tmp_path / 'f', '--figures', 'survival',
            'proportion', 'step', *options)
        drawn[i] = {p.name: p.read_bytes() for p in (tmp_path / 'f').glob('*')}
    assert drawn[0]['step_SE.png'] == drawn[1]['step_SE.png']
    assert drawn[0]['step_SE.png'] != drawn[2]['step_SE.png']
    for name in ('survival.png', 'proportion.png'):
        assert drawn[0][name] == drawn[2][name] != drawn[1][name]


@pytest.mark.parametrize('arguments, match', [
    (('--figures', 'step'), 'no block with a known gate'),
    (('--figures', 'seeds'), 'expected the blocks of plain'),
    (('--names', 'a'), '--names: .* 2 records, got 1'),
    (('--m1', -1, 2), 'm1: expected'),
])
def test_what_is_named_must_apply(run, write, arguments, match):
    records = write('plain', False), write(
        'other', False, blocks=['x', 'y', 'z', 'u', 'v'])
    with pytest.raises(ValueError, match=match):
        run(*records, *arguments)


def test_other_definitions(run, write, tmp_path):
    with pytest.raises(ValueError, match='residual.*output'):
        run(write('a'), write('b', definition='output'))
    assert not (tmp_path / 'figures').exists()


def test_no_such_record(run, tmp_path):
    with pytest.raises(FileNotFoundError, match='no such file'):
        run(tmp_path / 'none.jsonl')
