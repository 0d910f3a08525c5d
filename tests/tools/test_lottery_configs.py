import math
import re

import pytest
import torch
from mmengine.config import Config

from stepnet_mm.analysis import (
    random_blocks,
    rank_blocks,
    step_blocks,
    stiffest_blocks,
)
from stepnet_mm.stiffness import (
    RecordHeader,
    append_rows,
    begin_record,
    read_stiffness_record,
)
from stepnet_mm.studies.run import config_digest, runs_of
from stepnet_mm.studies.study import read_study

pytestmark = pytest.mark.core

TOOL = 'analysis/lottery_configs'
SIZES = (3, 4, 6, 3)


@pytest.fixture
def record(tmp_path):
    """record('a', samples) -> the path of a record of R-34"""

    def record(name='a', nsi=None, sizes=SIZES, **changes):
        rows = [(f'backbone.layer{stage}.{i}', stage, i)
                for stage, size in enumerate(sizes, 1)
                for i in range(1, size)]
        blocks, stage, position = map(list, zip(*rows))
        fields = dict(definition='residual', blocks=blocks, stage=stage,
                      position=position, samples=4, stages=len(sizes))
        if nsi is None:
            nsi = torch.rand(4, len(rows)) + .1
        path = tmp_path / f'{name}.jsonl'
        begin_record(path, RecordHeader(**{**fields, **changes}))
        append_rows(path, 0, nsi, torch.full_like(nsi, math.nan))
        return path

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


def test_random_blocks_are_the_same_everywhere(record):
    header = read_stiffness_record(record()).header
    assert step_blocks(random_blocks(header, 4, 0), 4) == [
        [2], [], [1, 4, 5], []]


def test_stiffest_blocks_are_the_first_ranked(record):
    found = read_stiffness_record(record())
    for by in ('area', 'mean'):
        chosen = stiffest_blocks(found, 3, by)
        assert [row['block'] for row in chosen] == [
            row['block'] for row in rank_blocks(found, by)[:3]]


def test_stiffest_blocks_without_an_area(record):
    nsi = torch.ones(4, 12)
    nsi[:, 5], nsi[:, 2:5] = 2, .5  # two stages of equal blocks, one stiff
    found = read_stiffness_record(record(nsi=nsi))
    with pytest.warns(UserWarning, match='got 7 of which only 1 have one'):
        chosen = stiffest_blocks(found, 7)
    names = [row['block'] for row in chosen]
    assert names[0] == found.header.blocks[5]
    assert not {*names} & {*found.header.blocks[2:5]}


@pytest.mark.parametrize('k', [0, 13])
def test_a_wrong_number_of_blocks(record, k):
    found = read_stiffness_record(record())
    with pytest.raises(ValueError, match=f'k: expected 1 to 12, .*got {k}'):
        random_blocks(found.header, k, 0)
    with pytest.raises(ValueError, match=f'k: expected 1 to 12, .*got {k}'):
        stiffest_blocks(found, k)


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
            stiffest_blocks(measured, 3), 4)
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


def test_plain_is_written_for_each_config_that_differs(tool, record, configs,
                                                       tmp_path):
    configs[1].write_text(configs[1].read_text() + 'max_norm = 1\n')
    found = write(tool, record(), configs, tmp_path / 'lth', '-k', 1)
    assert {'classifier_none', 'se_none'} < set(found)


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
    (['--study', 'a.py', '--seeds', 1, 1], '--seeds: expected different'),
    (['--study', 'a.py', '--seeds', -1], '--seeds: expected different'),
    (['--study', 'se_all.py'], '--study: expected a name that no config')])
def test_wrong_studies(tool, record, configs, tmp_path, arguments, match):
    with pytest.raises(ValueError, match=match):
        write(tool, record(), configs, tmp_path / 'lth', '-k', 2, *arguments)
    assert not (tmp_path / 'lth').exists()


def test_a_study_lies_beside_its_configs(tool, record, configs, tmp_path,
                                         capsys):
    with pytest.raises(SystemExit):
        write(tool, record(), configs, tmp_path / 'lth', '-k', 2, '--study',
              '../a.py')
    assert "--study: expected a file name such as tickets.py, got '../a.py'" \
        in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize('kind, steps', [
    ('stiffest2', 2), ('none', 0)])
def test_they_train(tool, record, configs, tmp_path, kind, steps):
    write(tool, record(), configs[1:], tmp_path / 'lth', '-k', 2)
    tool('train', tmp_path / f'lth/se_{kind}.py', '--work-dir',
         tmp_path / 'work', '--cfg-options', 'train_cfg.max_epochs=1')
    weights = torch.load(tmp_path / 'work/epoch_1.pth',
                         weights_only=False)['state_dict']
    having = {key.partition('.step.')[0] for key in weights
              if '.step.' in key}
    assert len(having) == steps


def test_a_detector(tool, record, tmp_path):
    pytest.importorskip('mmdet')
    base = tmp_path / 'detector.py'
    base.write_text('''
_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports='stepnet_mm', allow_failed_imports=False)
model = dict(
    backbone=dict(type='StepResNet', depth=18, base_channels=8,
                  stem_channels=8),
    neck=dict(in_channels=[8, 16, 32, 64]))
''')
    found = write(tool, record(sizes=(2, 2, 2, 2)), [base], tmp_path / 'lth',
                  '-k', 4)
    assert found['detector_stiffest4'].model.backbone.step_blocks == [[1]] * 4


@pytest.mark.parametrize('changes, arguments, match', [
    ({}, ['-k', 2, 13], '-k: expected 1 to 12, .*got 13'),
    ({}, ['-k', 0], '-k: expected 1 to 12, .*got 0'),
    (dict(sizes=(3, 4, 23, 3)), ['-k', 2],
     r'a.jsonl: expected the blocks of .*classifier.py, \[2, 3, 5, 2\] by '
     r'stage .*got \[2, 3, 22, 2\]'),
    (dict(stages=5), ['-k', 2], r'expected the blocks.*got \[2, 3, 5, 2, 0\]'),
    (dict(nsi=torch.full((4, 12), math.inf)), ['-k', 2],
     'a.jsonl: expected a sample with a finite NSI everywhere, got none in 4'),
])
def test_bad_records_and_numbers(tool, record, configs, tmp_path, changes,
                                 arguments, match):
    with pytest.raises(ValueError, match=match):
        write(tool, record(**changes), configs, tmp_path / 'lth', *arguments)
    assert not (tmp_path / 'lth').exists()


@pytest.mark.parametrize('backbone', [
    "type='StepResNet', step=None",
    "type='StepResNet', step=['StepAdaptor'] + 3 * [None]",
    "type='ResNet'", "type='StepVisionTransformer', _delete_=True"])
def test_a_config_without_steps_in_blocks(tool, record, configs, tmp_path,
                                          backbone):
    configs[1].write_text("_base_ = 'classifier.py'\n"
                          f'model = dict(backbone=dict({backbone}))\n')
    with pytest.raises(ValueError, match='se.py: expected one backbone that '
                       'takes step_blocks, with a step in every stage, got 0'):
        write(tool, record(), configs, tmp_path / 'lth', '-k', 2)
    assert not (tmp_path / 'lth').exists()


def test_no_such_config(tool, record, tmp_path):
    with pytest.raises(ValueError, match="got 'gone.py', which is no file"):
        write(tool, record(), ['gone.py'], tmp_path / 'lth', '-k', 2)


def test_configs_of_one_name(tool, record, configs, tmp_path):
    with pytest.raises(ValueError, match='--configs: .*different names'):
        write(tool, record(), [configs[1], configs[1]], tmp_path / 'lth',
              '-k', 2)


def test_nothing_is_overwritten(tool, record, configs, tmp_path):
    path = record()
    write(tool, path, configs, tmp_path / 'lth', '-k', 2)
    before = {p: p.read_bytes() for p in (tmp_path / 'lth').glob('*')}
    with pytest.raises(ValueError, match='--out: expected new files, got '
                       '.*se_stiffest2.py'):
        write(tool, path, configs[::-1], tmp_path / 'lth', '-k', 3, 2)
    assert {p: p.read_bytes() for p in (tmp_path / 'lth').glob('*')
            } == before


@pytest.mark.parametrize('name, words', [
    ('lottery_configs', ['r.jsonl', '-k', 1, '--configs', 'c.py']),
    ('stiffness_properties', ['--network', 'c.py', 'c.pth'])])
def test_a_file_where_a_folder_is_meant(tool, tmp_path, capsys, name, words):
    (tmp_path / 'taken').touch()
    with pytest.raises(SystemExit):
        tool(f'analysis/{name}', *words, '--out', tmp_path / 'taken')
    assert '--out: expected a folder, got' in capsys.readouterr().err
