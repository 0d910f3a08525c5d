import math
import re

import pytest
import torch
from block_choice import rank_blocks, step_blocks
from mmengine.config import Config
from study_file import read_study

from stepnet_mm.stiffness import read_stiffness_record

TOOL = 'analysis/lottery_configs'
SIZES = (3, 4, 6, 3)


@pytest.fixture
def record(write_record):
    """record(nsi) -> the path of a record of R-34"""
    rows = [(f'backbone.layer{stage}.{i}', stage, i)
            for stage, size in enumerate(SIZES, 1) for i in range(1, size)]
    blocks, stage, position = map(list, zip(*rows))

    def record(nsi=None, **changes):
        if nsi is None:
            nsi = torch.rand(4, len(rows)) + .1
        return write_record('a', nsi, **{**dict(
            blocks=blocks, stage=stage, position=position,
            stages=len(SIZES)), **changes})

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
    """name -> config, of the new files"""
    tool(TOOL, record, '--configs', *configs, '--out', out, *arguments)
    return {path.stem: Config.fromfile(path) for path in out.glob('*.py')}


def test_all_configs(tool, record, configs, tmp_path):
    path = record(meta=dict(config='se.py\nwrong'))
    found = write(tool, path, configs, tmp_path / 'new' / 'lth', '-k', 2, 3,
                  '--random-seeds', 0, 0, 5)
    kinds = ['all', 'random2_draw0', 'random2_draw5', 'random3_draw0',
             'random3_draw5', 'stiffest2', 'stiffest3']
    assert sorted(found) == sorted(
        ['classifier_none', *(f'{name}_{kind}' for kind in kinds
                              for name in ('classifier', 'se'))])
    blocks = {name: getattr(cfg.model.backbone, 'step_blocks', None)
              for name, cfg in found.items()}
    for name in ('classifier', 'se'):
        assert blocks[f'{name}_stiffest3'] == step_blocks(
            rank_blocks(read_stiffness_record(path))[:3], 4)
        few, many = ({(stage, i) for stage, own in enumerate(
            blocks[f'{name}_random{k}_draw5'], 1) for i in own}
            for k in (2, 3))
        assert few < many and (len(few), len(many)) == (2, 3)
    assert blocks['se_random3_draw0'] != blocks['se_random3_draw5']
    assert found['se_stiffest3'].model.backbone.step.type == 'SEAttention'
    assert found['se_all'].model == Config.fromfile(configs[1]).model
    assert found['classifier_none'].model.backbone.step is None
    text = (tmp_path / 'new/lth/se_stiffest2.py').read_text()
    assert '# se with steps in the 2 stiffest of 12 measured blocks' in text
    assert re.search(rf'# Record: {path} \(sha256 \w{{12}}\), '
                     r"config 'se.py\\nwrong'\n", text)
    assert '# Command: python ' in text and '-k 2 3' in text


def test_a_study_of_runs_of_a_study(tool, record, configs, tmp_path):
    """Their configs differ in the seed and the folder too."""
    runs = [tmp_path / f'my-{config.stem}_seed{i}.py'
            for i, config in enumerate(configs)]
    for i, (run, config) in enumerate(zip(runs, configs)):
        cfg = Config.fromfile(config)
        cfg.work_dir, cfg.randomness = f'work/{i}', dict(seed=i)
        cfg.dump(run)
    path, out = record(), tmp_path / 'lth'
    write(tool, path, runs, out, '-k', 2, '--study', 'tickets.py',
          '--seeds', 3, 4)
    study = read_study(out / 'tickets.py')
    assert {m.name: m.config.name for m in study.methods} == {
        'none': 'my-classifier_seed0_none.py',
        **{f'my_{name}_{i}_{kind}': f'my-{name}_seed{i}_{kind}.py'
           for i, name in enumerate(('classifier', 'se'))
           for kind in ('all', 'stiffest2', 'random2_draw0')}}
    assert all(method.seeds == [3, 4] for method in study.methods)
    assert study.measure == dict(
        num_samples=2000, definitions=['residual', 'output', 'update'],
        ablate_steps=False, robustness=False)
    before = {p: p.read_bytes() for p in out.glob('*')}
    with pytest.raises(ValueError, match='--out: expected new files'):
        write(tool, path, runs[::-1], out, '-k', 3, 2)
    assert {p: p.read_bytes() for p in out.glob('*')} == before


NO_STEP = "type='StepResNet', step=['StepAdaptor'] + 3 * [None]"


@pytest.mark.parametrize('changes, backbone, arguments, key', [
    ({}, '', ['--study', 'se_all.py'], '--out: .*different names'),
    ({}, '', ['-k', 2, 13], '-k: expected 1 to 12, .*got 13'),
    (dict(blocks=[*'abcdefghijkl']), '', [],
     "a.jsonl: expected the 12 blocks of .*got 12, .*'a'"),
    (dict(nsi=torch.full((4, 12), math.inf)), '', [],
     'a.jsonl: expected a sample with a finite NSI everywhere, got none in 4'),
    ({}, NO_STEP, [], 'se.py: expected one backbone .*got 0')])
def test_wrong_input(tool, record, configs, tmp_path, changes, backbone,
                     arguments, key):
    if backbone:
        configs[1].write_text("_base_ = 'classifier.py'\n"
                              f'model = dict(backbone=dict({backbone}))\n')
    with pytest.raises(ValueError, match=key):
        write(tool, record(**changes), configs, tmp_path / 'lth', '-k', 2,
              *arguments)
    assert not (tmp_path / 'lth').exists()
