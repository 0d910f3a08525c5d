"""plot.py stiffness and plot.py training."""
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

TOOL = 'analysis/plot'
STAGE = [1, 1, 1, 2, 2]
NSI = torch.rand(20, 5, generator=torch.Generator().manual_seed(0)) + .1
NSI[0, 2] = math.inf


@pytest.mark.parametrize('names, wanted, files, skipped', [
    pytest.param(
        ['SE_seed0', 'SE_seed1'], ['--figures', 'tns', 'step', 'seeds'],
        ['seeds', 'step_SE_seed0', 'step_SE_seed1', 'tns'], [],
        marks=pytest.mark.long),
    (['plain'], [], ['depth', 'proportion', 'survival'],
     ['tns', 'step', 'seeds'])])
def test_figures_and_the_table(printed, write_record, tmp_path, names, wanted,
                               files, skipped):
    """Of a network without gates, and of one record, some do not apply."""
    out = printed(TOOL, 'stiffness', *(write_record(
        name, NSI, None if name == 'plain' else 1 / (1 + NSI), stage=STAGE,
        blocks=[f'b{i}' for i in range(5)], position=[1, 2, 3, 1, 2])
        for name in names), '--degree', .2, .1, *wanted)
    found = sorted((tmp_path / 'figures').iterdir())
    assert [path.name for path in found] == [f'{name}.png' for name in files]
    for path in found:
        assert str(path) in out and cv2.imread(str(path)).std() > 5
    assert re.findall(r'^(\w+): skipped', out, re.MULTILINE) == skipped
    samples, blocks = (
        share(NSI, STAGE, [.2], [.1]).item()
        for share in (stiffness_survival, stiffness_proportion))
    assert (f'{names[0]}: stiff to (0.2, 0.1): {samples:.1%} of the samples, '
            f'{blocks:.1%} of the blocks') in out
    tns = total_neural_stiffness(NSI[1:], STAGE)
    error = tns.std() / math.sqrt(19)
    row = re.search(rf'^{names[0]} .*$', out, re.MULTILINE).group()
    assert row.split() == [
        names[0], '20', '1', 'residual', f'{tns.mean():.4g}', '±',
        f'{error:.2g}', f'{tns.median():.4g}', f'{tns.quantile(.95):.4g}'
    ]


def test_a_training_by_hook(printed, write_log, tmp_path):
    write_log(tmp_path, 'run', [dict(step=50, nonfinite=8), dict(
        step=100, tns=2., tns_median=1., tns_q95=4., nsi_stage1_mean=.5,
        nsi_stage1_max=.9, nonfinite=0)], 'probe')
    table = printed(TOOL, 'training', tmp_path, '--hook', 'probe').splitlines()
    assert [line.split() for line in table[:3]] == [
        ['step', 'tns', 'tns_median', 'tns_q95', 'nsi_stage1_mean'],
        ['50', *['nan'] * 4], ['100', '2', '1', '4', '0.5']]
    assert cv2.imread(str(tmp_path / 'tns.png')).std() > 5
    with pytest.raises(ValueError, match=(
            r"that 'stiffness' has logged, got TNSHooks named \['probe'\]")):
        printed(TOOL, 'training', tmp_path)
