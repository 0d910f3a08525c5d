import json
import pickle
import re
import shutil

import pytest
import torch
from mmengine.config import Config
from outcome import trained_with
from resume_run import assert_same

from stepnet_mm.launch.entry import make_parser
from stepnet_mm.utils import provenance
from stepnet_mm.version import __version__

#: A name that shells and patterns read otherwise.
ODD = """it's [a-c]* ? "b" %s {0} Ü模"""


def rows(work_dir):
    return [json.loads(line)
            for path in sorted(work_dir.glob('*/vis_data/s*.json'))
            for line in path.read_text().splitlines()]


def measured(work_dir):
    return [row['step'] for row in rows(work_dir) if 'stiffness/tns' in row]


@pytest.mark.core
def test_a_detector_trains_resumes_and_is_tested(tool, detector, tmp_path):
    work = tmp_path / 'work'
    tool('train', detector, '--work-dir', work)
    assert any('coco/bbox_mAP_50' in row for row in rows(work))
    log, = work.glob('*/*.log')
    assert re.search(r'saved iter_4.pth in [\d.]+ s', log.read_text())
    assert re.search(rf'predict.py {work / detector.name} {work}\S* '
                     'IMAGE_OR_FOLDER --steps\n', log.read_text())
    assert measured(work) == [2, 4]
    # For the libraries' tools.
    own = Config.fromfile(work / detector.name)
    assert 'stepnet_mm' in own.custom_imports.imports
    assert not re.search('Resumable|Atomic|Intact|BrokenImageHook',
                         own.pretty_text)

    # As after a kill between two checkpoints.
    whole = torch.load(work / 'iter_4.pth', weights_only=False)
    (work / 'iter_4.pth').unlink()
    (work / 'last_checkpoint').write_text(str(work / 'iter_2.pth'))
    tool('train', detector, '--work-dir', work, '--resume')
    assert measured(work) == [2, 4, 4]
    end = torch.load(work / 'iter_4.pth', weights_only=False)
    for key in ('state_dict', 'optimizer', 'param_schedulers'):
        assert_same(whole[key], end[key], key)

    # With the config of a training that was resumed: no ``resume`` here.
    tool('test', detector, work / 'iter_4.pth', '--work-dir',
         tmp_path / 'test', '--show-dir', tmp_path / 'drawn', '--out',
         tmp_path / 'all.pkl', '--cfg-options', 'resume=True',
         'auto_resume=True')
    assert len(list((tmp_path / 'drawn').rglob('*.*'))) == 3
    predicted = pickle.loads((tmp_path / 'all.pkl').read_bytes())
    assert len(predicted) == 3 and all(
        'pred_instances' in row for row in predicted)


def test_a_dataset_that_cannot_be_built_is_named(tool, detector, tmp_path):
    with pytest.raises(ValueError, match="^train_dataloader: .*'cat'.*'circ"):
        tool('train', detector, '--work-dir', tmp_path, '--cfg-options',
             'train_dataloader.dataset.metainfo.classes=(cat,)')


@pytest.mark.core
def test_a_classifier_with_odd_names(tool, classifier, tmp_path, monkeypatch):
    """It trains, goes on, is tested and measured."""
    monkeypatch.setattr(provenance, 'revision', lambda: 'abc-dirty')
    odd = tmp_path / ODD
    odd.mkdir()
    config, work = odd / f'{ODD}.py', odd / f'{ODD}_work'
    (tmp_path / 'images').rename(odd / f'{ODD}_images')
    shutil.copy(classifier, config)
    data = '--data-root', odd / f'{ODD}_images'
    tool('train', config, *data, '--work-dir', work, '--cfg-options',
         'train_cfg.max_epochs=1')
    log, = work.glob('*/*.log')
    assert f'INFO - stepnet_mm: {__version__}, abc-dirty\n' in (
        log.read_text())
    with pytest.raises(RuntimeError, match='Top-3'):
        tool('train', config, *data, '--work-dir', work, '--cfg-options',
             'val_evaluator.topk=(3,)')
    tool('train', config, *data, '--work-dir', work, '--resume')
    assert Config.fromfile(work / config.name).train_cfg.max_epochs == 2
    assert any('accuracy/top1' in row for row in rows(work))
    assert measured(work) == [1, 2, 3, 4]
    assert trained_with(work) == dict(
        commit='abc-dirty', device='cpu', machine=provenance.machine())
    last = work / 'epoch_2.pth'
    tool('test', config, last, *data, '--work-dir', odd / 'test',
         '--show-dir', odd / 'drawn', '--interval', 2, '--out',
         odd / f'{ODD}.json', '--out-item', 'metrics')
    assert len(list((odd / 'drawn').rglob('*.png'))) == 2
    assert 'accuracy/top1' in json.loads((odd / f'{ODD}.json').read_text())
    torch.save(dict(state_dict={}), odd / 'other.pth')
    with pytest.raises(ValueError, match='CHECKPOINT: expected weights for '
                       'all of ImageClassifier'):
        tool('test', config, odd / 'other.pth', *data, '--work-dir',
             odd / 'test')
    tool('analysis/measure_stiffness', config, last, *data, '--out',
         work / f'{ODD}.jsonl')
    monkeypatch.setattr('report_page.picture', lambda figure: dict(
        url='', width=300))
    tool('analysis/plot', 'report', work)
    assert (work / 'report.html').is_file()


@pytest.mark.parametrize('text, value', [
    ('a b/c d.pth', 'a b/c d.pth'), ('"[(1, 2)]"', [(1, 2)]),
    ("['a b' , ( 1, 'c (d)' )]", ['a b', (1, 'c (d)')]),
    ('my a,my b', ['my a', 'my b']), ('run[lr=0.1]/it"s', 'run[lr=0.1]/it"s')])
def test_options_keep_their_spaces(text, value):
    args = make_parser('').parse_args(
        ['config.py', '--cfg-options', f'load_from={text}'])
    assert args.cfg_options == dict(load_from=value)


@pytest.mark.parametrize('text, todo', [
    ('load_from', 'key=value'), ('a=[1,(2]', 'brackets'),
    ('a=[dict(type=X,a=1)]', 'KEY.0.NAME=VALUE')])
def test_options_that_are_none(text, todo, capsys):
    with pytest.raises(SystemExit):
        make_parser('').parse_args(['config.py', '--cfg-options', 'b=1', text])
    error = capsys.readouterr().err.splitlines()[-1]
    assert '--cfg-options: expected' in error and todo in error
