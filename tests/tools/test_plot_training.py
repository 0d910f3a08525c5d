import json
import math

import cv2
import pytest

pytest.importorskip('matplotlib')


def write_hooks(folder, **rows):
    for name, measured in rows.items():
        path = folder / 'run' / 'vis_data' / f'{name}.json'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(''.join(
            json.dumps({k if k == 'step' else f'{name}/{k}': v
                        for k, v in row.items()}) + '\n'
            for row in measured))
    return folder


def test_table_and_picture(tool, tmp_path, capsys):
    heads = ['step', 'tns', 'tns_median', 'tns_q95', 'nsi_stage1_mean']
    rows = [dict(step=50, nonfinite=8),
            dict(step=100, tns=2., tns_median=1., tns_q95=4.,
                 nsi_stage1_mean=.5, nsi_stage1_max=.9, nonfinite=0)]
    tool('analysis/plot', 'training', write_hooks(tmp_path, stiffness=rows))
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == heads
    for line, row in zip(table[1:], rows):
        expected = [row.get(key, math.nan) for key in heads]
        assert [float(cell) for cell in line.split()] == pytest.approx(
            expected, nan_ok=True)
    assert cv2.imread(str(tmp_path / 'tns.png')).std() > 5


def test_of_several_hooks_one_is_chosen(tool, tmp_path, capsys):
    hooks = {name: [dict(step=5, tns=tns, nonfinite=0)]
             for name, tns in dict(stiffness=1., probe=2., late=3.).items()}
    work = write_hooks(tmp_path / 'a', **hooks)
    for options, tns in (((), 1.), (('--hook', 'probe'), 2.)):
        tool('analysis/plot', 'training', work, *options)
        row = capsys.readouterr().out.splitlines()[1]
        assert float(row.split()[1]) == tns
    hooks.pop('stiffness')
    other = write_hooks(tmp_path / 'b', **hooks)
    for arguments, match in (
            ((work, '--hook', 'mine'), "--hook: .*'late', 'probe'.*got"),
            ((other, ), "--hook: .*'late', 'probe'.*got"),
            ((work, '--out', work / 'run/vis_data/late.json'),
             '--out: expected a file that is not read')):
        with pytest.raises(SystemExit, match=match):
            tool('analysis/plot', 'training', *arguments)
