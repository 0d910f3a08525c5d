"""Folders and files with names that shells and patterns read otherwise."""
import shutil

import pytest

from stepnet_mm.launch.entry import make_parser

ODD = """it's [a-c]* ? "b" %s {0} Ü模"""


@pytest.mark.long
def test_a_run_and_what_is_read_from_it(tool, classifier, tmp_path,
                                        monkeypatch):
    odd = tmp_path / ODD
    odd.mkdir()
    config, work = odd / f'{ODD}.py', odd / f'{ODD}_work'
    (tmp_path / 'images').rename(odd / f'{ODD}_images')
    shutil.copy(classifier, config)
    data = ('--data-root', odd / f'{ODD}_images')
    tool('train', config, *data, '--work-dir', work, '--cfg-options',
         'train_cfg.max_epochs=1')
    tool('train', config, *data, '--work-dir', work, '--resume')
    last = work / 'epoch_2.pth'
    tool('test', config, last, *data, '--work-dir', odd / 'test',
         '--show-dir', odd / 'drawn', '--out', odd / f'{ODD}.pkl')
    assert list((odd / 'drawn').rglob('*.png'))
    record = work / f'{ODD}.jsonl'
    tool('analysis/measure_stiffness', config, last, *data, '--out', record)
    monkeypatch.setattr('stiffness_page.picture', lambda figure: dict(
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
        make_parser('').parse_args(
            ['config.py', '--cfg-options', 'b=1', text])
    error = capsys.readouterr().err.splitlines()[-1]
    assert '--cfg-options: expected' in error and todo in error
