import math
import re
from ast import literal_eval

import pytest
import torch

TOOL = 'analysis/select_blocks'
BLOCKS = ['a.1', 'a.2', 'c.1', 'c.2', 'c.3']
STAGE, POSITION = [1, 1, 3, 3, 3], [1, 2, 1, 2, 3]
# Areas of the first sample: 0, .5 * 3; 0, 0, 1 * 2. Of the second: .5 * 6,
# 0; 0, 0, 0.
NSI = torch.tensor([[1., 3., .5, .5, 2.], [6., 2., 1., 1., 1.]])


@pytest.fixture
def write(write_record):
    """write('seed0', nsi) -> the path of a record of these samples"""

    def write(name, nsi=NSI, **changes):
        return write_record(name, nsi, **{**dict(
            blocks=BLOCKS, stage=STAGE, position=POSITION, stages=4),
            **changes})

    return write


@pytest.fixture
def run(tool, capsys):
    """run(record, '-k', 2) -> its table by block, and all it printed"""

    def run(*arguments):
        capsys.readouterr()
        tool(TOOL, *arguments)
        out = capsys.readouterr().out
        rows = re.findall(r'^ +\d+  (\S+) +(.*)$', out, re.MULTILINE)
        return {name: rest.split() for name, rest in rows}, out

    return run


def chosen(out):
    return literal_eval(
        re.search(r'^step_blocks=(.*)$', out, re.MULTILINE).group(1))


def test_table_by_hand(run, write):
    table, out = run(write('seed0'), '-k', 2)
    assert list(table) == ['a.1', 'c.3', 'a.2', 'c.1', 'c.2']
    total = (3 + 1.5 + 2) / 2
    assert table['a.1'] == [
        '1', '1', '3.5', '1.5', f'{1.5 / total:.1%}', f'{1.5 / total:.1%}',
        '50.0%'
    ]
    assert table['c.3'][2:] == [
        '1.5', '1', f'{1 / total:.1%}', f'{2.5 / total:.1%}', '50.0%'
    ]
    assert table['c.2'][2:] == ['0.75', '0', '0.0%', '100.0%', '0.0%']
    assert chosen(out) == [[1], [], [3], []]
    assert f'first 2 of 5 measured blocks have {2.5 / total:.1%}' in out


def test_the_other_order_and_thresholds(run, write):
    table, out = run(
        write('seed0'), '-k', 3, '--by', 'mean', '--m1', 0, '--m2', 2.5)
    assert list(table) == ['a.1', 'a.2', 'c.3', 'c.1', 'c.2']
    assert chosen(out) == [[1, 2], [], [3], []]
    assert [row[-1] for row in table.values()] == [
        '50.0%', '50.0%', '0.0%', '0.0%', '0.0%'
    ]


def test_seeds_are_pooled_and_what_is_not_finite_is_left_out(run, write):
    bad = torch.cat([NSI[:1], torch.full((1, 5), math.inf)])
    table, out = run(write('a', bad), write('b', NSI[1:]), '-k', 1)
    assert table == run(write('c'), '-k', 1)[0]
    assert '2 samples of 2 records, 1 more are not finite' in out


def test_blocks_without_an_area_are_ranked_by_mean_and_warned_of(run, write):
    with pytest.warns(UserWarning, match='got 4 of which only 3 have one.*'
                      'choose k <= 3 or --by mean') as found:
        table, out = run(write('seed0'), '-k', 4)
    assert found[0].filename.endswith('select_blocks.py')
    assert chosen(out) == [[1, 2], [], [1, 3], []]


@pytest.mark.parametrize('changes, arguments, key', [
    ({}, ('-k', 6), '-k: expected 1 to 5, .*got 6'),
    ({}, ('-k', 1, '--m2', 'nan'), 'm2: '),
    (dict(blocks=[*'vwxyz']), ('-k', 1), 'b.jsonl: expected the blocks')])
def test_wrong_input(run, write, changes, arguments, key):
    with pytest.raises(ValueError, match=key):
        run(write('a'), write('b', **changes), *arguments)
