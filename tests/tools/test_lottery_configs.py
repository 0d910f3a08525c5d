"""The ranking of blocks, and configs with steps in some of them."""
import math
import re
from ast import literal_eval

import pytest
import torch
from lottery_configs import rank_blocks, step_blocks
from mmengine.config import Config
from study_file import read_study

from stepnet_mm.stiffness import read_stiffness_record

TOOL = 'analysis/lottery_configs'
#: Blocks by hand. Areas of the first sample: 0, .5 * 3; 0, 0, 1 * 2. Of the
#: second: .5 * 6, 0; 0, 0, 0.
BY_HAND = dict(blocks=['a.1', 'a.2', 'c.1', 'c.2', 'c.3'],
               stage=[1, 1, 3, 3, 3], position=[1, 2, 1, 2, 3], stages=4)
NSI = torch.tensor([[1., 3., .5, .5, 2.], [6., 2., 1., 1., 1.]])
#: The measured blocks of R-34.
R34 = [(f'backbone.layer{stage}.{i}', stage, i)
       for stage, size in enumerate((3, 4, 6, 3), 1) for i in range(1, size)]
RANDOM = torch.rand(4, 12, generator=torch.Generator().manual_seed(0)) + .1


@pytest.fixture
def rank(tool, capsys):
    """rank(record, '-k', 2) -> its table by block, its step_blocks"""

    def rank(*arguments):
        capsys.readouterr()
        tool(TOOL, *arguments)
        out = capsys.readouterr().out
        rows = re.findall(r'^([ac]\.\d) +(.*)$', out, re.MULTILINE)
        chosen = re.search(r'^step_blocks=(.*)$', out, re.MULTILINE).group(1)
        return ({name: rest.split() for name, rest in rows},
                literal_eval(chosen))

    return rank


def test_table_by_hand(rank, write_record):
    path = write_record('seed0', NSI, **BY_HAND)
    table, chosen = rank(path, '-k', 2)
    assert list(table) == ['a.1', 'c.3', 'a.2', 'c.1', 'c.2']
    total = (3 + 1.5 + 2) / 2
    assert table['a.1'] == [
        '1', '1', '3.5', '1.5', f'{1.5 / total:.1%}', '50.0%']
    assert table['c.2'][2:] == ['0.75', '0', '100.0%', '0.0%']
    assert chosen == [[1], [], [3], []]
    with pytest.warns(UserWarning, match='got 4 of which only 3 have one'):
        assert rank(path, '-k', 4)[1] == [[1, 2], [], [1, 3], []]


def test_seeds_are_pooled_and_what_is_not_finite_is_left_out(
        rank, write_record):
    paths = [write_record(name, nsi, **BY_HAND) for name, nsi in dict(
        a=torch.cat([NSI[:1], torch.full((1, 5), math.inf)]),
        b=NSI[1:], c=NSI).items()]
    assert rank(*paths[:2], '-k', 1) == rank(paths[2], '-k', 1)
    other = write_record('d', NSI, **{**BY_HAND, 'blocks': [*'vwxyz']})
    with pytest.raises(ValueError, match='d.jsonl: expected .*a.jsonl'):
        rank(paths[0], other, '-k', 1)


@pytest.fixture
def record(write_record):
    """record(nsi, blocks=...) -> the path of a record of R-34"""
    blocks, stage, position = map(list, zip(*R34))

    def record(nsi=RANDOM, **changes):
        return write_record('a', nsi, **{**dict(
            blocks=blocks, stage=stage, position=position, stages=4),
            **changes})

    return record


@pytest.fixture
def configs(classifier, tmp_path):
    """Runs of a study: the toy classifier as R-34, with StepNet and SE."""
    pytest.importorskip('mmpretrain')
    runs = []
    for seed, step in enumerate((
            dict(type='StepAdaptor'), dict(type='SEAttention', reduction=8))):
        cfg = Config.fromfile(classifier)
        cfg.model.backbone.update(depth=34, step=step)
        runs.append(tmp_path / f'my-{step["type"][:2]}_seed{seed}.py')
        cfg.dump(runs[-1])
    return runs


def test_all_configs_and_their_study(tool, record, configs, tmp_path):
    path, out = record(meta=dict(config='se.py\nwrong')), tmp_path / 'new/lth'
    arguments = (TOOL, path, '--configs', *configs, '--out', out)
    tool(*arguments, '-k', 2, 3, '--random-seeds', 0, 5,
         '--study', 'tickets.py', '--seeds', 3, 4)
    study = read_study(out / 'tickets.py')
    names = ('my-St_seed0', 'my-SE_seed1')
    assert {m.name: m.config.stem for m in study.methods} == {
        'none': 'my-St_seed0_none',
        **{f'{name.replace("-", "_").replace("_seed", "_")}_{kind}':
           f'{name}_{kind}' for name in names for kind in (
               'all', 'stiffest2', 'stiffest3', 'random2_draw0',
               'random2_draw5', 'random3_draw0', 'random3_draw5')}}
    assert all(method.seeds == [3, 4] for method in study.methods)
    assert study.measure['num_samples'] == 2000
    found = {m.config.stem: Config.fromfile(m.config).model
             for m in study.methods}
    blocks = {name: model.backbone.get('step_blocks')
              for name, model in found.items()}
    for name in names:
        assert blocks[f'{name}_stiffest3'] == step_blocks(
            rank_blocks(read_stiffness_record(path), 3)[:3], 4)
        few, many = ({(stage, i) for stage, own in enumerate(
            blocks[f'{name}_random{k}_draw5'], 1) for i in own}
            for k in (2, 3))
        assert few < many and (len(few), len(many)) == (2, 3)
    assert (blocks['my-SE_seed1_random3_draw0']
            != blocks['my-SE_seed1_random3_draw5'])
    assert found['my-SE_seed1_all'] == Config.fromfile(configs[1]).model
    assert found['my-SE_seed1_stiffest3'].backbone.step.type == 'SEAttention'
    assert found['my-St_seed0_none'].backbone.step is None
    text = (out / 'my-SE_seed1_stiffest2.py').read_text()
    assert re.search(rf'# Record: {path} \(sha256 \w{{12}}\), '
                     r"config 'se.py\\nwrong'\n", text)
    before = {p: p.read_bytes() for p in out.glob('*')}
    with pytest.raises(FileExistsError):
        tool(*arguments, '-k', 4)
    assert {p: p.read_bytes() for p in out.glob('*')} == before


@pytest.mark.parametrize('changes, step, k, key', [
    ({}, {}, 13, '-k: expected 1 to 12, .*got 13'),
    (dict(blocks=[*'abcdefghijkl']), {}, 2, 'SE_seed1.py: expected the 12 '),
    (dict(nsi=torch.full((4, 12), math.inf)), {}, 2, 'a.jsonl: .*none in 4'),
    ({}, dict(step=['StepAdaptor'] + 3 * [None]), 2,
     'SE_seed1.py: expected one backbone .*got 0')])
def test_wrong_input(tool, record, configs, tmp_path, changes, step, k, key):
    cfg = Config.fromfile(configs[1])
    cfg.model.backbone.update(step)
    cfg.dump(configs[1])
    with pytest.raises(ValueError, match=key):
        tool(TOOL, record(**changes), '--configs', configs[1],
             '--out', tmp_path / 'lth', '-k', k)
    assert not (tmp_path / 'lth').exists()
