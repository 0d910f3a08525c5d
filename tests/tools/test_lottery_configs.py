import math
import re

import pytest
import torch
from block_choice import random_blocks, rank_blocks, step_blocks
from mmengine.config import Config
from study_file import read_study, runs_of

from stepnet_mm.config.digests import config_digest
from stepnet_mm.stiffness import read_stiffness_record

TOOL = 'analysis/lottery_configs'
SIZES = (3, 4, 6, 3)


@pytest.fixture
def record(write_record):
    """record('a', samples) -> the path of a record of R-34"""

    def record(name='a', nsi=None, sizes=SIZES, **changes):
        rows = [(f'backbone.layer{stage}.{i}', stage, i)
                for stage, size in enumerate(sizes, 1)
                for i in range(1, size)]
        blocks, stage, position = map(list, zip(*rows))
        if nsi is None:
            nsi = torch.rand(4, len(rows)) + .1
        return write_record(name, nsi, blocks=blocks, stage=stage,
                            position=position, stages=len(sizes), **changes)

    return record


@pytest.fixture
def configs(classifier, tmp_path):
    """The toy classifier as R-34 with StepNet and with SE."""
    pytest.importorskip('mmpretrain')
    classifier.write_text(classifier.read_text().replace(
        "type='StepResNet'", "type='StepResNet', depth=34"))
    (tmp_path / 'se.py').write_text(
        "_base_ = 'classifier.py'\n"
        "model = dict(backbone=dict(step=dict(type='SEAttention', "
        'reduction=8)))\n')
    return classifier, tmp_path / 'se.py'


def write(tool, record, configs, out, *arguments):
    tool(TOOL, record, '--configs', *configs, '--out', out, *arguments)
    return {path.stem: Config.fromfile(path) for path in out.glob('*.py')}


def test_random_blocks_are_drawn_by_their_seed(record):
    header = read_stiffness_record(record()).header
    names = [[row['block'] for row in random_blocks(header, 5, seed)]
             for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]
    assert len({*names[0]}) == 5 and {*names[0]} < {*header.blocks}
    assert [row['block'] for row in random_blocks(header, 3, 0)] == (
        names[0][:3])
    every = random_blocks(header, 12, 7)
    assert step_blocks(every, 4) == [[1, 2], [1, 2, 3], [1, 2, 3, 4, 5],
                                     [1, 2]]


def test_all_configs(tool, record, configs, tmp_path):
    path = record(meta=dict(config='se.py\nwrong'))
    found = write(tool, path, configs, tmp_path / 'new' / 'lth', '-k', 2, 3,
                  '--random-seeds', 0, 5)
    kinds = ['all', 'random2_draw0', 'random2_draw5', 'random3_draw0',
             'random3_draw5', 'stiffest2', 'stiffest3']
    assert sorted(found) == sorted(
        ['classifier_none', *(f'{name}_{kind}' for kind in kinds
                              for name in ('classifier', 'se'))])
    measured = read_stiffness_record(path)
    for name in ('classifier', 'se'):
        backbone = found[f'{name}_stiffest3'].model.backbone
        assert backbone.step_blocks == step_blocks(
            rank_blocks(measured)[:3], 4)
        assert found[f'{name}_random2_draw5'].model.backbone.step_blocks == (
            step_blocks(random_blocks(measured.header, 2, 5), 4))
    assert found['se_stiffest3'].model.backbone.step.type == 'SEAttention'
    assert found['se_all'].model == Config.fromfile(configs[1]).model
    assert found['classifier_none'].model.backbone.step is None
    text = (tmp_path / 'new/lth/se_stiffest2.py').read_text()
    assert '# se with steps in the 2 stiffest of 12 measured blocks' in text
    assert re.search(rf'# Record: {path} \(sha256 \w{{12}}\), '
                     r"config 'se.py\\nwrong'\n", text)
    assert '# Command: python ' in text and '-k 2 3' in text


def test_a_study_of_two_configs(tool, record, configs, tmp_path):
    out = tmp_path / 'new' / 'lth'
    write(tool, record(), configs, out, '-k', 2, '--study', 'tickets.py',
          '--seeds', 3, 4)
    study = read_study(out / 'tickets.py')
    assert {m.name: m.config.name for m in study.methods} == {
        'none': 'classifier_none.py',
        **{f'{name}_{kind}': f'{name}_{kind}.py'
           for name in ('classifier', 'se')
           for kind in ('all', 'stiffest2', 'random2_draw0')}}
    assert all(method.seeds == [3, 4] for method in study.methods)
    assert study.measure == dict(
        num_samples=2000, definitions=['residual', 'output', 'update'],
        ablate_steps=False, robustness=False)
    assert re.search(r'^# Record: .*\n# Command: python .*-k 2',
                     (out / 'tickets.py').read_text(), re.M)


@pytest.mark.long
def test_a_study_of_the_runs_of_a_study(tool, record, configs, tmp_path):
    """Their configs differ in the seed and the folder too."""
    path = record()
    runs = [tmp_path / f'my-{config.stem}_seed{i}.py'
            for i, config in enumerate(configs)]
    for i, (run, config) in enumerate(zip(runs, configs)):
        cfg = Config.fromfile(config)
        cfg.work_dir, cfg.randomness = f'work/{i}', dict(seed=i)
        cfg.dump(run)
    write(tool, path, runs[1:], tmp_path / 'one', '-k', 2, '--study',
          'a.py')
    one = read_study(tmp_path / 'one/a.py')
    assert [method.name for method in one.methods] == [
        'none', 'all', 'stiffest2', 'random2_draw0']
    write(tool, path, runs, tmp_path / 'two', '-k', 2, '--study', 'a.py')
    two = read_study(tmp_path / 'two/a.py')
    assert [method.name for method in two.methods] == [
        'none', 'my_classifier_0_all', 'my_se_1_all',
        'my_classifier_0_stiffest2', 'my_se_1_stiffest2',
        'my_classifier_0_random2_draw0', 'my_se_1_random2_draw0']
    digests = [{config_digest(run.config()) for run in runs_of(s, tmp_path)}
               for s in (one, two)]
    assert len(digests[0]) == 4 and len(digests[1]) == 7


@pytest.mark.parametrize('arguments, match', [
    (['--study', 'a.py', '--seeds', -1], '--seeds: expected different'),
    (['--study', 'se_all.py'], '--study: expected a name that no config')])
def test_wrong_studies(tool, record, configs, tmp_path, arguments, match):
    with pytest.raises(ValueError, match=match):
        write(tool, record(), configs, tmp_path / 'lth', '-k', 2, *arguments)
    assert not (tmp_path / 'lth').exists()


@pytest.mark.parametrize('changes, arguments, match', [
    ({}, ['-k', 2, 13], '-k: expected 1 to 12, .*got 13'),
    ({}, ['-k', 0], '-k: expected 1 to 12, .*got 0'),
    (dict(sizes=(3, 4, 23, 3)), ['-k', 2],
     r'a.jsonl: expected the blocks of .*classifier.py, \[2, 3, 5, 2\] by '
     r'stage .*got \[2, 3, 22, 2\]'),
    (dict(nsi=torch.full((4, 12), math.inf)), ['-k', 2],
     'a.jsonl: expected a sample with a finite NSI everywhere, got none in 4'),
])
def test_bad_records_and_numbers(tool, record, configs, tmp_path, changes,
                                 arguments, match):
    with pytest.raises(ValueError, match=match):
        write(tool, record(**changes), configs, tmp_path / 'lth', *arguments)
    assert not (tmp_path / 'lth').exists()


@pytest.mark.long
@pytest.mark.parametrize('backbone', [
    "type='StepResNet', step=['StepAdaptor'] + 3 * [None]",
    "type='StepVisionTransformer', _delete_=True"])
def test_a_config_without_steps_in_blocks(tool, record, configs, tmp_path,
                                          backbone):
    configs[1].write_text("_base_ = 'classifier.py'\n"
                          f'model = dict(backbone=dict({backbone}))\n')
    with pytest.raises(ValueError, match='se.py: expected one backbone that '
                       'takes step_blocks, with a step in every stage, got 0'):
        write(tool, record(), configs, tmp_path / 'lth', '-k', 2)
    assert not (tmp_path / 'lth').exists()


@pytest.mark.long
def test_nothing_is_overwritten(tool, record, configs, tmp_path):
    path = record()
    write(tool, path, configs, tmp_path / 'lth', '-k', 2)
    before = {p: p.read_bytes() for p in (tmp_path / 'lth').glob('*')}
    with pytest.raises(ValueError, match='--out: expected new files, got '
                       '.*se_stiffest2.py'):
        write(tool, path, configs[::-1], tmp_path / 'lth', '-k', 3, 2)
    assert {p: p.read_bytes() for p in (tmp_path / 'lth').glob('*')
            } == before


def test_a_file_where_a_folder_is_meant(tool, tmp_path, capsys):
    (tmp_path / 'taken').touch()
    with pytest.raises(SystemExit):
        tool(TOOL, 'r.jsonl', '-k', 1, '--configs', 'c.py', '--out',
             tmp_path / 'taken')
    assert '--out: expected a folder, got' in capsys.readouterr().err
