import errno
import os
from unittest import mock

import pytest
from mmengine.fileio import get_file_backend

from stepnet_mm.resume import AtomicLocalBackend
from stepnet_mm.utils.files import UNFINISHED


@pytest.mark.core
@pytest.mark.parametrize('at, error, left', [
    ('fsync', KeyboardInterrupt('killed'), [f'a.pth{UNFINISHED}']),
    ('replace', KeyboardInterrupt('killed'), [f'a.pth{UNFINISHED}']),
    ('fsync', OSError(errno.ENOSPC, 'full'), [])],
    ids=['fsync', 'replace', 'full disk'])
def test_the_old_file_is_there_until_the_new_one_is_whole(
        tmp_path, monkeypatch, at, error, left):
    """Not even a link is written through. The error names the file."""
    path = tmp_path / 'folder' / 'a.pth'
    backend = get_file_backend(path, backend_args=dict(backend='atomic_local'))
    assert type(backend) is AtomicLocalBackend
    backend.put('öld'.encode(), path)
    os.symlink('a.pth', f'{path}{UNFINISHED}')
    monkeypatch.setattr(os, at, mock.Mock(side_effect=error))
    with pytest.raises(type(error), match='killed|full: expected room for '
                       rf"1,048,576 bytes, got [\d,]+ bytes free; .*'{path}'"):
        backend.put(bytes(2**20), path)
    assert path.read_text() == 'öld'
    assert sorted(os.listdir(path.parent)) == ['a.pth', *left]
