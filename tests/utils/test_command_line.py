import os
from argparse import ArgumentTypeError

import pytest

from stepnet_mm.utils.command_line import (
    check_output,
    output_file,
    output_folder,
    positive,
)


def test_what_can_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = tmp_path / 'there.png'
    there.touch()
    for text in ('new.png', 'a/b/new.png', str(there)):
        assert str(output_file(text)) == os.path.normpath(text)
    for text in ('new', 'a/b', '.'):
        assert output_folder(text) == type(tmp_path)(text)


@pytest.mark.parametrize('kind, text, why', [
    *((positive, text, 'expected a posit') for text in ('0', '1.5')),
    *((output_folder, text, 'expected a folder, got')
      for text in ('file/inside/of', '')),
    (output_file, '.', 'is a folder'),
    (output_file, 'file/out.png', 'is a file')])
def test_what_is_refused(tmp_path, monkeypatch, kind, text, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'file').touch()
    with pytest.raises(ArgumentTypeError, match=why):
        kind(text)


@pytest.mark.parametrize('kind', [output_file, output_folder])
def test_what_is_read_only(tmp_path, monkeypatch, kind):
    # Permissions do not hold root back, which tests may run as.
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    with pytest.raises(ArgumentTypeError, match='is read-only'):
        kind(str(tmp_path / 'new/out'))


def test_an_output_that_is_an_input_by_any_name(tmp_path):
    read, link, other = (tmp_path / name for name in ('read', 'link', 'a'))
    read.touch()
    link.symlink_to(read)
    other.hardlink_to(read)
    for path in (read, str(link), other, tmp_path / '../' / tmp_path.name /
                 'read'):
        with pytest.raises(ValueError, match='--out: expected a file that is'):
            check_output('--out', path, [None, 'https://a/b.pth', read])
    for path in (None, tmp_path / 'new', link):
        check_output('--out', path, [None, tmp_path / 'absent'])
