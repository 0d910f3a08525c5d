import argparse
import os

import pytest

from stepnet_mm.utils.command_line import (
    aligned,
    check_output,
    output_file,
    output_folder,
    positive,
)


@pytest.mark.parametrize('text', ['0', '1.5', ''])
def test_no_positive_integer(text):
    with pytest.raises(argparse.ArgumentTypeError, match='expected a posit'):
        positive(text)


def test_what_can_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = tmp_path / 'there.png'
    there.touch()
    for text in ('new.png', 'a/b/new.png', str(there), './x', 'run[lr=0.1]/x'):
        assert str(output_file(text)) == os.path.normpath(text)
    for text in ('new', 'a/b', str(tmp_path), '.', 'run[lr=0.1]'):
        assert output_folder(text) == type(tmp_path)(text)


def test_what_is_no_folder(tmp_path):
    path = tmp_path / 'file'
    path.touch()
    for text in (path, path / 'inside/of', ''):
        with pytest.raises(argparse.ArgumentTypeError,
                           match='expected a folder, got'):
            output_folder(str(text))


def test_a_file_that_is_a_folder_or_lies_in_a_file(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(argparse.ArgumentTypeError, match='is a folder'):
        output_file(str(tmp_path))
    with pytest.raises(argparse.ArgumentTypeError, match='is a file'):
        output_file(str(tmp_path / 'file/out.png'))


@pytest.mark.parametrize('kind', [output_file, output_folder])
def test_what_is_read_only(tmp_path, monkeypatch, kind):
    # Permissions do not hold root back, which tests may run as.
    monkeypatch.setattr(os, 'access', lambda path, mode: False)
    with pytest.raises(argparse.ArgumentTypeError, match='is read-only'):
        kind(str(tmp_path / 'new/out'))


def test_names_stand_left_and_numbers_right():
    assert aligned([('a', 'b'), ('long', '1'), ('c', '20')]) == (
        'a      b\n'
        'long   1\n'
        'c     20')


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
