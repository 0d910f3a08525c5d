"""A damaged checkpoint is told from a whole one; see also
test_atomic_checkpoint_hook.py.
"""
import errno
import os
import random
import shutil
import zipfile

import pytest
import torch

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint
from stepnet_mm.safe_loading.loaders import UnsafeCheckpointError


@pytest.fixture
def folder(tmp_path):
    """A work dir with iter_1.pth and the newer iter_2.pth."""
    folder = tmp_path / "it's Ü模 [lr=0.1]"
    folder.mkdir()
    state = dict(meta={}, message_hub={}, state_dict=dict(w=torch.rand(999)))
    for iteration in (1, 2):
        path = folder / f'iter_{iteration}.pth'
        torch.save(state, path)
        os.utime(path, (iteration, iteration))
    return folder


def chosen(folder):
    path, wrong = latest_checkpoint(str(folder), template='iter_{}.pth')
    return os.path.basename(path), wrong


@pytest.mark.parametrize('template, name', [
    ('iter_{}.pth', 'iter_2.pth'), ('iter_{:03d}.pth', 'iter_012.pth')])
def test_names(folder, template, name):
    """Of copies of one date, the name's number counts."""
    (folder / 'iter_2.pth').rename(folder / name)
    for other in ('best_loss_iter_11.pth', 'iter_10-0123abcd.pth'):
        (folder / other).write_bytes(b'')
    expected = str(folder / name), {}
    assert latest_checkpoint(str(folder), template=template) == expected
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert latest_checkpoint(str(folder), template=template) == expected


@pytest.mark.parametrize('out', ['.', 'out'])
def test_a_copied_work_dir_goes_on_by_itself(folder, tmp_path, out):
    """So does one that was moved; ``out`` is a checkpoint hook's out_dir."""
    here = tmp_path / 'copy'
    shutil.copytree(folder, here / out)
    (here / 'last_checkpoint').write_text(f'{folder}/iter_2.pth')
    os.utime(folder / 'iter_2.pth', (9, 9))
    assert latest_checkpoint(str(here), str(here / out), 'iter_{}.pth') == (
        str(here / out / 'iter_2.pth'), {})


@pytest.mark.parametrize('content', [
    b'\xff\xfe\x80', b'\0\0', b'http://127.0.0.1:9/a.pth', b'/dev/zero'])
def test_a_pointer_that_is_garbage(folder, content):
    (folder / 'last_checkpoint').write_bytes(content)
    name, wrong = chosen(folder)
    assert name == 'iter_2.pth' and len(wrong) == 1


@pytest.mark.core
def test_refused_is_not_damaged(folder):
    torch.save(dict(a=os.mkdir), folder / 'iter_2.pth')
    with pytest.raises(UnsafeCheckpointError, match=r'iter_2\.pth.*mkdir'):
        chosen(folder)


def test_what_a_power_cut_leaves_is_damaged(folder):
    """A part, a flipped bit, zeros and random bytes."""
    whole = (folder / 'iter_2.pth').read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for content in [whole[:0], whole[:-9], flipped, bytes(512),
                    random.Random(1).randbytes(600)]:
        (folder / 'iter_2.pth').write_bytes(content)
        name, wrong = chosen(folder)
        assert name == 'iter_1.pth' and len(wrong) == 1


@pytest.mark.parametrize('owner, name, error', [
    (os, 'stat', OSError(errno.ESTALE, 'a')),
    (os, 'scandir', OSError(errno.EACCES, 'a')),
    (zipfile, 'ZipFile', MemoryError())])
def test_what_cannot_be_read_now_is_not_damaged(folder, monkeypatch, owner,
                                                name, error):
    found = getattr(owner, name)

    def fail(place, *args, **kwargs):
        if str(place).endswith('last_checkpoint'):  # there is none
            return found(place, *args, **kwargs)
        raise error

    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(owner, name, fail)
        latest_checkpoint(str(folder), template='iter_{}.pth')
