"""The ranking of blocks, and step_blocks of some of them."""
import math
import re
from ast import literal_eval

import pytest
import torch

TOOL = 'analysis/stiffest_blocks'
#: Blocks by hand. Areas of the first sample: 0, .5 * 3; 0, 0, 1 * 2. Of the
#: second: .5 * 6, 0; 0, 0, 0.
BY_HAND = dict(blocks=['a.1', 'a.2', 'c.1', 'c.2', 'c.3'],
               stage=[1, 1, 3, 3, 3], position=[1, 2, 1, 2, 3], stages=4)
NSI = torch.tensor([[1., 3., .5, .5, 2.], [6., 2., 1., 1., 1.]])


@pytest.fixture
def rank(printed):
    """rank(record, '-k', 2) -> its table by block, all its step_blocks"""

    def rank(*arguments):
        out = printed(TOOL, *arguments)
        rows = re.findall(r'^([ac]\.\d) +(.*)$', out, re.MULTILINE)
        return ({name: rest.split() for name, rest in rows},
                [*map(literal_eval, re.findall('step_blocks=(.*)', out))])

    return rank


def test_table_by_hand(rank, write_record):
    path = write_record('seed0', NSI, **BY_HAND)
    table, chosen = rank(path, '-k', 2)
    assert list(table) == ['a.1', 'c.3', 'a.2', 'c.1', 'c.2']
    total = (3 + 1.5 + 2) / 2
    assert table['a.1'] == [
        '1', '1', '3.5', '1.5', f'{1.5 / total:.1%}', '50.0%']
    assert table['c.2'][2:] == ['0.75', '0', '100.0%', '0.0%']
    assert chosen == [[[1], [], [3], []]]


def test_random_blocks_are_nested_and_another_seed_draws_others(
        rank, write_record):
    path = write_record('seed0', NSI, **BY_HAND)
    _, (_, few, other, _, many, _) = rank(
        path, '-k', 2, 4, '--random-seeds', 0, 5)
    assert few != other
    few, many = ({(stage, i) for stage, own in enumerate(blocks, 1)
                  for i in own} for blocks in (few, many))
    assert few < many and (len(few), len(many)) == (2, 4)


def test_seeds_are_pooled_and_what_is_not_finite_is_left_out(
        rank, write_record):
    paths = [write_record(name, nsi, **BY_HAND) for name, nsi in dict(
        a=torch.cat([NSI[:1], torch.full((1, 5), math.inf)]),
        b=NSI[1:], c=NSI).items()]
    assert rank(*paths[:2], '-k', 1) == rank(paths[2], '-k', 1)
    other = write_record('d', NSI, **{**BY_HAND, 'blocks': [*'vwxyz']})
    for arguments, match in (
            ((paths[0], other, '-k', 1), 'd.jsonl: expected .*a.jsonl'),
            ((paths[0], '-k', 0), '-k: expected 1 to 5, .*got 0'),
            ((paths[0], '-k', 2, 6), '-k: expected 1 to 5, .*got 6')):
        with pytest.raises(ValueError, match=match):
            rank(*arguments)
