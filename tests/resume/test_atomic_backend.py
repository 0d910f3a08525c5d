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
def test_mmengine_builds_it_by_its_name(path):
    backend = get_file_backend(
        path, backend_args=dict(backend='atomic_local'))
    assert type(get_file_backend(path)) is not type(backend)
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


@pytest.mark.parametrize('name', ['folder', 'a.pth/b.pth'])
def test_only_a_full_disk_lacks_space(path, name):
    (path.parent / 'folder').mkdir()
    with pytest.raises(OSError, match=f'{name}: expected to wri'):
        AtomicLocalBackend().put(b'new', path.parent / name)


def test_a_full_disk(path, monkeypatch):

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match=r'a\.pth: expected to write 1\.0 MiB, '
                       r'got No space left on device;'):
        AtomicLocalBackend().put(bytes(2**20), path)
    assert path.read_bytes() == b'old'
    assert os.listdir(path.parent) == ['a.pth']
