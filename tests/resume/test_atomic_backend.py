import errno
import os

import pytest
from mmengine.fileio import get_file_backend

from stepnet_mm.resume.atomic_backend import AtomicLocalBackend
from stepnet_mm.utils.files import UNFINISHED


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'folder' / 'a.pth'
    AtomicLocalBackend().put(b'old', path)
    return path


@pytest.mark.core
def test_mmengine_builds_it_by_its_name():
    backend = get_file_backend(
        'a/b', backend_args=dict(backend='atomic_local'))
    assert isinstance(backend, AtomicLocalBackend)
    assert type(get_file_backend('a/b')) is not AtomicLocalBackend


def test_folders_are_made_and_files_replaced(path):
    backend = AtomicLocalBackend()
    backend.put(b'new', path)
    backend.put_text('täxt', path.with_name('text'))
    assert path.read_bytes() == b'new'
    assert path.with_name('text').read_text() == 'täxt'
    assert sorted(os.listdir(path.parent)) == ['a.pth', 'text']


@pytest.mark.parametrize('at', ['fsync', 'replace'])
def test_the_old_file_is_there_until_the_new_one_is_whole(
        path, monkeypatch, at):

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, at, killed)
    with pytest.raises(KeyboardInterrupt):
        AtomicLocalBackend().put(b'new', path)
    assert path.read_bytes() == b'old'
    assert path.with_name(f'a.pth{UNFINISHED}').exists()


def test_a_folder_that_cannot_be_made(path):
    with pytest.raises(OSError, match=r'b\.pth: expected to write .* got '):
        AtomicLocalBackend().put(b'new', path / 'folder' / 'b.pth')


def test_only_a_full_disk_lacks_space(path, monkeypatch):
    backend, other = AtomicLocalBackend(), path.with_name('b.pth')
    other.mkdir()
    with pytest.raises(IsADirectoryError, match='expected to write') as folder:
        backend.put(b'new', other)
    monkeypatch.setattr(
        os, 'fsync', lambda _: path.parent.rename(f'{path.parent}_renamed'))
    with pytest.raises(FileNotFoundError, match='expected to wri') as renamed:
        backend.put(b'new', path)
    assert 'make space' not in f'{folder.value} {renamed.value}'


def test_a_full_disk(path, monkeypatch):

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match=r'a\.pth: expected to write 1\.0 MiB .*'
                       r'got No space left on device with .* free; make sp'):
        AtomicLocalBackend().put(bytes(2**20), path)
    assert path.read_bytes() == b'old'
    assert os.listdir(path.parent) == ['a.pth']
