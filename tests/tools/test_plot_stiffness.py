"""plot.py stiffness and plot.py training."""
import json
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

STAGE = [1, 1, 1, 2, 2]
NSI = torch.rand(20, 5, generator=torch.Generator().manual_seed(0)) + .1
NSI[0, 2] = math.inf


@pytest.fixture
def write(write_record):
    """write('SE_seed0', gates=False) -> the path of its record"""

    def write(name, gates=True):
        return write_record(
            name, NSI, 1 / (1 + NSI) if gates else None, stage=STAGE,
            blocks=[f'b{i}' for i in range(5)], position=[1, 2, 3, 1, 2])

    return write


@pytest.fixture
def run(tool, capsys):
    """run('stiffness', record, ...) -> what it printed"""

    def run(*arguments):
        tool('analysis/plot', *arguments)
        return capsys.readouterr().out

    return run


def files(folder):
    return sorted(path.name for path in folder.glob('*'))


@pytest.mark.long
def test_figures_of_seeds_and_the_table(run, write, tmp_path):
    out = run('stiffness', write('SE_seed0'), write('SE_seed1'), '--figures',
              'tns', 'step', 'seeds')
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


def test_what_does_not_apply_is_skipped(run, write, tmp_path):
    out = run('stiffness', write('plain', False), '--out', tmp_path / 'f',
              '--format', 'svg', '--degree', .2, .1)
    assert files(tmp_path / 'f') == ['depth.svg', 'proportion.svg',
                                     'survival.svg']
    assert re.findall(r'^(\w+): skipped', out, re.MULTILINE) == [
        'tns', 'step', 'seeds']
    samples, blocks = (
        share(NSI, STAGE, [.2], [.1]).item()
        for share in (stiffness_survival, stiffness_proportion))
    assert (f'plain: stiff to (0.2, 0.1): {samples:.1%} of the samples, '
            f'{blocks:.1%} of the blocks') in out


def test_a_training_by_hook(run, tmp_path):
    path = tmp_path / 'run/vis_data/probe.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(json.dumps(
        {k if k == 'step' else f'probe/{k}': v for k, v in row.items()}
    ) + '\n' for row in (dict(step=50, nonfinite=8), dict(
        step=100, tns=2., tns_median=1., tns_q95=4., nsi_stage1_mean=.5,
        nsi_stage1_max=.9, nonfinite=0))))
    table = run('training', tmp_path, '--hook', 'probe').splitlines()
    assert [line.split() for line in table[:3]] == [
        ['step', 'tns', 'tns_median', 'tns_q95', 'nsi_stage1_mean'],
        ['50', *['nan'] * 4], ['100', '2', '1', '4', '0.5']]
    assert cv2.imread(str(tmp_path / 'tns.png')).std() > 5
    with pytest.raises(SystemExit, match='plot.py: error: --hook: .*'
                       r"\['probe'\], got 'stiffness'"):
        run('training', tmp_path)
