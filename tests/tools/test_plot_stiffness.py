import math
import re

import cv2
import pytest
import torch

from stepnet_mm.stiffness import (
    stiffness_proportion,
    stiffness_survival,
    total_neural_stiffness,
)

pytest.importorskip('matplotlib')

STAGE, POSITION = [1, 1, 1, 2, 2], [1, 2, 3, 1, 2]
NSI = torch.rand(20, 5, generator=torch.Generator().manual_seed(0)) + .1
NSI[0, 2] = math.inf
STEP = 1 / (1 + NSI)


@pytest.fixture
def write(write_record):
    """write('SE_seed0', gates=False) -> the path of its record"""

    def write(name, gates=True, **changes):
        return write_record(name, NSI, STEP if gates else None, **{**dict(
            blocks=[f'b{i}' for i in range(5)], stage=STAGE,
            position=POSITION), **changes})

    return write


@pytest.fixture
def run(tool, capsys):
    """run(record, ...) -> what it printed"""

    def run(*arguments):
        capsys.readouterr()
        tool('analysis/plot', 'stiffness', *arguments)
        return capsys.readouterr().out

    return run


def files(folder):
    return sorted(path.name for path in folder.glob('*'))


@pytest.mark.long
def test_figures_of_seeds_and_the_table(run, write, tmp_path):
    out = run(write('SE_seed0'), write('SE_seed1'), '--figures', 'tns',
              'step', 'seeds')
    folder = tmp_path / 'figures'
    assert files(folder) == [
        'seeds.png', 'step_SE_seed0.png', 'step_SE_seed1.png', 'tns.png']
    for name in files(folder):
        assert str(folder / name) in out
        assert cv2.imread(str(folder / name)).std() > 5
    tns = total_neural_stiffness(NSI[1:], STAGE)
    error = tns.std() / math.sqrt(19)
    row = re.search(r'^SE_seed0 .*$', out, re.MULTILINE).group()
    assert row.split() == [
        'SE_seed0', '20', '1', 'residual', f'{tns.mean():.4g}', '±',
        f'{error:.2g}', f'{tns.median():.4g}', f'{tns.quantile(.95):.4g}'
    ]


def test_properties_and_their_numbers(run, write, tmp_path):
    out = run(write('SE', False), '--figures', 'properties', '--degree', .2,
              .1, '--out', tmp_path / 'f')
    assert files(tmp_path / 'f') == ['properties.png']
    samples, blocks = (
        share(NSI, STAGE, [.2], [.1]).item()
        for share in (stiffness_survival, stiffness_proportion))
    assert (f'SE: stiff to (0.2, 0.1): {samples:.1%} of the samples, '
            f'{blocks:.1%} of the blocks') in out


@pytest.mark.long
def test_options_reach_the_figures_and_what_does_not_apply_is_skipped(
        run, write, tmp_path):
    record, folder = write('plain', False), tmp_path / 'f'
    out = run(record, '--out', folder, '--format', 'svg')
    assert files(folder) == ['depth.svg', 'proportion.svg', 'survival.svg']
    assert re.findall(r'^(\w+): skipped, \w+', out, re.MULTILINE) == [
        'tns', 'step', 'seeds']
    drawn = (folder / 'proportion.svg').read_bytes()
    run(record, '--out', folder, '--format', 'svg', '--figures', 'proportion',
        '--m1', 0, 1, '--m2', 0, .5, 1)
    assert (folder / 'proportion.svg').read_bytes() != drawn


@pytest.mark.parametrize('changes, arguments, key', [
    ({}, ('--figures', 'seeds'), '.*expected the blocks of plain'),
    ({}, ('--names', 'a'), '--names: '), ({}, ('--m1', -1, 2), 'm1: '),
    (dict(definition='output'), (), '.*residual.*output')])
def test_errors_are_one_line(run, write, changes, arguments, key):
    records = write('plain', False), write('other', False, **{
        **dict(blocks=['x', 'y', 'z', 'u', 'v']), **changes})
    with pytest.raises(SystemExit, match=f'^plot.py: error: {key}'):
        run(*records, *arguments)
