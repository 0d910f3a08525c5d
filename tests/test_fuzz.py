"""Readers on damaged files: only errors that are ours come out.

The damage is drawn by hypothesis with a fixed seed: bits and pieces of a
valid file, any value of JSON in the place of another one. A message that is
ours names the file, what was expected and what was found.
"""
import collections
import copy
import functools
import json
import random

import numpy as np
import pytest
import torch
from drawn import bounded, places
from hypothesis import given
from hypothesis import strategies as st
from made_records import make_record
from study_outcome import last_checkpoint

from stepnet_mm.resume.latest_checkpoint import latest_checkpoint
from stepnet_mm.safe_loading.loaders import (
    UnsafeCheckpointError,
    load_from_local,
)
from stepnet_mm.stiffness import (
    append_rows,
    begin_record,
    read_stiffness_record,
)
from stepnet_mm.utils.random_state import get_random_state, set_random_state

#: Not their subclasses, such as UnicodeDecodeError.
OURS = (ValueError, FileNotFoundError, UnsafeCheckpointError)
#: Cases of each reader.
COUNT = 40
#: Whole files that are hard to read.
HARD = [b'', b'\0', b'\n', b'\xff\xfe', b'null\n', b'5\n', b'[]\n', b'{}\n',
        b'NaN\n', b'"\n', b'[' * 10**5, b'{"a":' * 10**4 + b'\n',
        b'1' * 5000 + b'\n', b'1e999\n', b'\x80\x02.', b'PK\3\4',
        b'PK\5\6' + bytes(18), b'\x93NUMPY\1\0']
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats()
    | st.text(max_size=3) | st.sampled_from(
        [2**31, -2**63, 10**400, 1e308, 'NaN', '\0', '\ud800', '../..']),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(
        st.text(max_size=3), part, max_size=3), max_leaves=4)


def ours(function, *names):
    """Call it; an error of another kind, or without the names, comes out."""
    try:
        return function()
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


@st.composite
def retold(draw, lines):
    """Lines of JSON in which some values were replaced or left out."""
    lines = copy.deepcopy(lines)
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from([*places(lines)]))
        if draw(st.booleans()) or holder is lines:
            holder[key] = draw(VALUES)
        elif isinstance(holder, (dict, list)):
            del holder[key]
        if not lines:
            break
    return lines


def as_lines(values):
    return b''.join(json.dumps(value).encode() + b'\n' for value in values)


def stiffness_record(folder):
    path, record = folder / 'r.jsonl', make_record(samples=4)
    begin_record(path, record.header)
    append_rows(path, 0, record.nsi[:2], record.step[:2])
    append_rows(path, 2, record.nsi[2:], record.step[2:])

    def read():
        ours(lambda: read_stiffness_record(path), str(path))
        ours(lambda: read_stiffness_record(path, partial=True), str(path))
        ours(lambda: begin_record(path, record.header), str(path))

    return path, read


def checkpoint(folder, **kwargs):
    path = folder / 'iter_2.pth'
    torch.save(dict(
        state_dict=collections.OrderedDict(a=torch.ones(9)), meta=dict(
            iter=2), array=np.arange(3)), path, **kwargs)

    def read():
        ours(lambda: load_from_local(str(path)), str(path))
        ours(lambda: latest_checkpoint(str(folder), template='iter_{}.pth'),
             str(path))

    return path, read


def legacy_checkpoint(folder):
    return checkpoint(folder, _use_new_zipfile_serialization=False)


def pointer(folder):
    path = folder / 'last_checkpoint'
    path.write_text(str(folder / 'iter_1.pth'))

    def read():
        latest_checkpoint(str(folder))
        last_checkpoint(folder)

    return path, read


READERS = (stiffness_record, pointer, *(
               pytest.param(reader, marks=pytest.mark.core)
               for reader in (checkpoint, legacy_checkpoint)))


@pytest.mark.parametrize('reader', READERS, ids=lambda f: f.__name__)
def test_a_damaged_file(tmp_path, reader):
    path, read = reader(tmp_path)
    read()
    content = path.read_bytes()
    cases = broken(content) | st.sampled_from(HARD)
    try:
        lines = [json.loads(line) for line in content.splitlines()]
        cases |= retold(lines).map(as_lines)
    except ValueError:
        pass  # it is no JSON

    @bounded(COUNT)
    @given(cases)
    def check(case):
        path.write_bytes(case)
        read()

    check()


@pytest.mark.core
def test_a_changed_random_state():
    whole = get_random_state()
    kind, words, *rest = whole['numpy']
    # Tuples are replaced as one.
    numbers = dict(python=[*whole['python']],
                   numpy=[kind, tuple(words), *rest])

    @bounded(COUNT)
    @given(retold([{**whole, **numbers}]))
    def check(case):
        for state in case:
            ours(functools.partial(set_random_state, state), 'random')
        random.gauss(0, 1), np.random.randn(), torch.rand(1)

    check()
    set_random_state(whole)
