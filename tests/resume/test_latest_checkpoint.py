"""A damaged checkpoint is told from a whole one; see also
test_atomic_checkpoint_hook.py.
"""
import pytest
import torch

from stepnet_mm.resume.latest_checkpoint import damage

pytestmark = pytest.mark.core


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
