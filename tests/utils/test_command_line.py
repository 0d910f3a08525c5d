import os
from argparse import ArgumentTypeError

import pytest

from stepnet_mm.utils.command_line import (
    check_output,
    command_parser,
    output_file,
    positive,
)


@pytest.mark.parametrize('kind, text, why', [
    (output_file, 'file', ''), (output_file, 'a/b/new.png', ''),
    (positive, '0', 'expected a posit'), (positive, '1.5', 'expected a posit'),
    (output_file, '.', 'is a folder'),
    (output_file, 'file/out.png', 'is a file')])
def test_arguments(tmp_path, monkeypatch, kind, text, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'file').touch()
    if not why:
        assert str(kind(text)) == text
        # Permissions do not hold root back, which tests may run as.
        monkeypatch.setattr(os, 'access', lambda path, mode: False)
        why = 'is read-only'
    with pytest.raises(ArgumentTypeError, match=why):
        kind(text)


def test_an_output_that_is_an_input_by_any_name(tmp_path):
    read, link, other = (tmp_path / name for name in ('read', 'link', 'a'))
    read.touch()
    link.symlink_to(read)
    other.hardlink_to(read)
    for path in read, str(link), other:
        with pytest.raises(ValueError, match='--out: expected a file that is'):
            check_output('--out', path, [None, 'https://a/b.pth', read])
    for path in (None, tmp_path / 'new', link):
        check_output('--out', path, [None, tmp_path / 'absent'])


def test_the_home_folder_is_meant_where_the_shell_leaves_its_sign(monkeypatch):
    monkeypatch.setenv('HOME', '/h')
    parser = command_parser('about')
    parser.add_argument('--work-dir')
    parser.add_argument('rest', nargs='*')
    rest = ['~/x', 'a.b=~/y', '~', 'a~/z', 'w/~', '~[a-z]+', 'k=a~b']
    args = parser.parse_args(['--work-dir=~/w', *rest])
    assert args.work_dir == '/h/w'
    assert args.rest == ['/h/x', 'a.b=/h/y', '/h', *rest[3:]]
