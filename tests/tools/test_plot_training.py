import json
import math

import cv2
import pytest

pytest.importorskip('matplotlib')
OLD = dict(step=50, tns=2., nsi_stage1_mean=.5, nsi_stage1_max=.9, nonfinite=0)
NEW = dict(OLD, step=100, tns_median=1., tns_q95=4.)


@pytest.mark.parametrize('rows, heads', [
    ([OLD], ['step', 'tns', 'nsi_stage1_mean']),
    ([OLD, NEW], ['step', 'tns', 'tns_median', 'tns_q95', 'nsi_stage1_mean'])
], ids=['before the quantiles', 'since then'])  # yapf: disable
def test_table_and_picture(tool, tmp_path, capsys, rows, heads):
    path = tmp_path / 'run' / 'vis_data' / 'scalars.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(
        json.dumps({k if k == 'step' else f'stiffness/{k}': v
                    for k, v in row.items()}) + '\n' for row in rows))
    tool('analysis/plot', 'training', tmp_path)
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == heads
    for line, row in zip(table[1:], rows):
        expected = [row.get(key, math.nan) for key in heads]
        assert [float(cell) for cell in line.split()] == pytest.approx(
            expected, nan_ok=True)
    assert cv2.imread(str(tmp_path / 'tns.png')).std() > 5


def write_hooks(folder, **tns):
    path = folder / 'run' / 'vis_data' / 'scalars.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(
        json.dumps({'step': 5, f'{name}/tns': value, f'{name}/nonfinite': 0})
        + '\n' for name, value in tns.items()))
    return folder


def test_of_several_hooks_one_is_chosen(tool, tmp_path, capsys):
    work = write_hooks(tmp_path / 'a', stiffness=1., probe=2.)
    for options, tns in (((), 1.), (('--hook', 'probe'), 2.)):
        tool('analysis/plot', 'training', work, *options)
        row = capsys.readouterr().out.splitlines()[1]
        assert float(row.split()[1]) == tns
    with pytest.raises(ValueError, match="'probe', 'stiffn.*'mine'"):
        tool('analysis/plot', 'training', work, '--hook', 'mine')
    with pytest.raises(ValueError, match="one of .'late', 'probe'.*got"):
        tool('analysis/plot', 'training',
             write_hooks(tmp_path / 'b', late=1., probe=2.))
