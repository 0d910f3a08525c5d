import errno
import os

import pytest
import torch
from mmengine.fileio import get_file_backend

from stepnet_mm.resume.atomic_backend import (
    UNFINISHED,
    AtomicLocalBackend,
    damage,
)

pytestmark = pytest.mark.core


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'folder' / 'a.pth'
    AtomicLocalBackend().put(b'old', path)
    return path


def test_mmengine_builds_it_by_its_name():
    backend = get_file_backend('a/b', backend_args=dict(backend='atomic_local'))
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


def test_a_full_disk(path, monkeypatch):

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match=r'a\.pth could not be written: No space '
                       r'left on device; it takes 1\.0 MiB .* free'):
        AtomicLocalBackend().put(bytes(2**20), path)
    assert path.read_bytes() == b'old'
    assert os.listdir(path.parent) == ['a.pth']


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / 'c.pth'
    torch.save(dict(a=torch.rand(1000), b='text'), path)
    return path


def test_a_whole_checkpoint(checkpoint):
    assert damage(str(checkpoint)) == ''


def test_no_checkpoint(tmp_path):
    assert 'no such file' in damage(str(tmp_path / 'x'))
    (tmp_path / 'x').write_bytes(b'x' * 300)
    assert 'cut off or no checkpoint' in damage(str(tmp_path / 'x'))
    (tmp_path / 'x').write_bytes(b'')
    assert 'cut off or no checkpoint' in damage(str(tmp_path / 'x'))


@pytest.mark.parametrize('share', [.1, .5, .9, .999])
def test_a_checkpoint_that_is_cut_off(checkpoint, share):
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:int(len(content) * share)])
    assert 'cut off or no checkpoint' in damage(str(checkpoint))


def test_any_bit_of_the_tensors(checkpoint):
    content = bytearray(checkpoint.read_bytes())
    weights = torch.load(checkpoint)['a'].numpy().tobytes()
    start = bytes(content).index(weights)
    for place in (0, 1, 2000, len(weights) - 1):
        changed = bytearray(content)
        changed[start + place] ^= 1
        checkpoint.write_bytes(changed)
        torch.load(checkpoint)  # torch itself does not see it
        assert 'checksum of its record' in damage(str(checkpoint))
