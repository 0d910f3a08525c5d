"""Damaged checkpoints: only errors that are ours come out.

The damage is drawn by hypothesis with a fixed seed: bits and pieces of a
valid file. A message that is ours names the file, what was expected and what
was found.
"""
import collections

import numpy as np
import pytest
import torch
from drawn import bounded
from hypothesis import given
from hypothesis import strategies as st

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint
from stepnet_mm.safe_loading.loaders import (
    UnsafeCheckpointError,
    load_from_local,
)

#: Not their subclasses, such as UnicodeDecodeError.
OURS = (ValueError, FileNotFoundError, UnsafeCheckpointError)
#: Whole files that are hard to read.
HARD = [b'', b'\0', b'\n', b'\xff\xfe', b'null\n', b'[' * 10**5,
        b'1' * 5000 + b'\n', b'\x80\x02.', b'PK\3\4', b'PK\5\6' + bytes(18),
        b'\x93NUMPY\1\0']


def ours(function, *names):
    """Call it; an error of another kind, or without the names, comes out."""
    try:
        function()
    except OURS as error:
        text = str(error)
        if type(error) not in OURS or not all(
                part in text for part in ('expected', 'got', *names)):
            raise AssertionError(f'a poor message: {text!r}') from error


@st.composite
def broken(draw, content):
    """Bytes of which up to three pieces were changed."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(changed) - 1, 0)))
        end = start + draw(st.sampled_from([0, 1, 2, 8, 10**9]))
        changed[start:end] = draw(
            st.binary(max_size=8) | st.sampled_from(
                [b'', bytes(changed[:50]), bytes(changed[start:start + 1])]))
    return bytes(changed)


@pytest.mark.core
@pytest.mark.parametrize('zipped', [True, False])
def test_a_damaged_checkpoint(tmp_path, zipped):
    path = tmp_path / 'iter_2.pth'
    torch.save(dict(
        state_dict=collections.OrderedDict(a=torch.ones(9)), meta=dict(
            iter=2), array=np.arange(3)), path,
        _use_new_zipfile_serialization=zipped)

    @bounded(40)
    @given(broken(path.read_bytes()) | st.sampled_from(HARD))
    def check(content):
        path.write_bytes(content)
        ours(lambda: load_from_local(str(path)), str(path))
        ours(lambda: latest_checkpoint(
            str(tmp_path), template='iter_{}.pth'), str(path))

    check()


def test_a_damaged_pointer(tmp_path):
    path = tmp_path / 'last_checkpoint'

    @bounded(40)
    @given(broken(f'{tmp_path}/iter_1.pth'.encode()) | st.sampled_from(HARD))
    def check(content):
        path.write_bytes(content)
        latest_checkpoint(str(tmp_path))

    check()
