import errno
import os

import pytest
from mmengine.fileio import get_file_backend

from stepnet_mm.resume import AtomicLocalBackend
from stepnet_mm.utils.files import UNFINISHED


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'folder' / 'a.pth'


@pytest.fixture
def backend(path):
    return get_file_backend(path, backend_args=dict(backend='atomic_local'))


@pytest.mark.core
def test_mmengine_builds_it_by_its_name(path, backend):
    assert type(backend) is AtomicLocalBackend
    for content in (b'old', b'new'):
        backend.put(content, path)
    backend.put_text('täxt', path.with_name('text'))
    assert path.read_bytes() == b'new'
    assert path.with_name('text').read_text() == 'täxt'
    assert sorted(os.listdir(path.parent)) == ['a.pth', 'text']


@pytest.mark.parametrize('at, error, left', [
    ('fsync', KeyboardInterrupt('killed'), [f'a.pth{UNFINISHED}']),
    ('replace', KeyboardInterrupt('killed'), [f'a.pth{UNFINISHED}']),
    ('fsync', OSError(errno.ENOSPC, 'full'), [])],
    ids=['fsync', 'replace', 'full disk'])
def test_the_old_file_is_there_until_the_new_one_is_whole(
        path, backend, monkeypatch, at, error, left):

    def fail(*_):
        raise error

    backend.put(b'old', path)
    monkeypatch.setattr(os, at, fail)
    with pytest.raises(type(error), match=r'killed|a\.pth: .* 1\.0 MiB'):
        backend.put(bytes(2**20), path)
    assert path.read_bytes() == b'old'
    assert sorted(os.listdir(path.parent)) == ['a.pth', *left]
