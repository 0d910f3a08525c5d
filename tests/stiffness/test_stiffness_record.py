import json
import math
from types import SimpleNamespace

import pytest
import torch
from made_records import make_record

from stepnet_mm.stiffness import (
    RecordHeader,
    append_rows,
    begin_record,
    read_stiffness_record,
)

INF, NAN = math.inf, math.nan


def header(samples=4, **changes):
    """Of one block in stage 1 and two in stage 3."""
    meta = dict(name='plain', seed=0, shape=(3, 32), date='Monday')
    return make_record(
        (1, 0, 2), samples, **dict(dict(meta=meta, stages=4), **changes)
    ).header


def table(rows, start=0.):
    return start + torch.rand(rows, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'new' / 'plain.jsonl'


@pytest.fixture
def half(path):
    """A record with the first two of four samples."""
    begin_record(path, header())
    append_rows(path, 0, table(1), table(1))
    append_rows(path, 1, table(1), table(1))
    return path


def refused(path, match, wanted=None):
    """No measurement continues in it, and the file stays."""
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match):
        begin_record(path, wanted or header())
    assert path.read_bytes() == before


def test_a_record_comes_back_bit_for_bit(path):
    bits = torch.randint(0, 0x7f800000, (500, 3), dtype=torch.int32)
    nsi = bits.view(torch.float32)
    nsi[:3, 0] = torch.tensor([1e-45, torch.finfo(torch.float32).max, INF])
    step = -nsi
    step[3, 1] = NAN
    assert begin_record(path, header(500)) == 0
    append_rows(path, 0, nsi[:7], step[:7])
    assert begin_record(path, header(500)) == 7
    with pytest.raises(ValueError, match='expected 500 samples, got 7'):
        read_stiffness_record(path)
    append_rows(path, 7, nsi[7:], step[7:])
    record = read_stiffness_record(path)
    assert record.nsi.dtype == record.step.dtype == torch.float64
    assert torch.equal(record.nsi.float(), nsi)
    known = step.isfinite()
    assert torch.equal(record.step.isfinite(), known)
    assert torch.equal(record.step.float()[known], step[known])
    assert record.header == header(
        500, meta=dict(header().meta, shape=[3, 32]))


@pytest.mark.parametrize('length', [4, 60, -2])
def test_a_cut_last_line_is_dropped_and_measured_again(half, length):
    kept = read_stiffness_record(half, partial=True).nsi[:1]
    *lines, last = half.read_bytes().splitlines(keepends=True)
    half.write_bytes(b''.join([*lines, last[:length]]))
    assert torch.equal(read_stiffness_record(half, partial=True).nsi, kept)
    assert begin_record(half, header()) == 1
    append_rows(half, 1, table(3, 5.), table(3))
    record = read_stiffness_record(half)
    assert torch.equal(record.nsi[:1], kept)
    assert (record.nsi[1:] >= 5).all()


@pytest.mark.parametrize('edit', [
    bytes.strip, lambda text: text.replace(b'\n', b'\r\n'),
    lambda text: b'\xef\xbb\xbf' + text])
def test_line_ends_of_an_editor_lose_nothing(half, edit):
    there = read_stiffness_record(half, partial=True)
    half.write_bytes(edit(half.read_bytes()))
    assert begin_record(half, header()) == 2
    append_rows(half, 2, table(2), table(2))
    assert torch.equal(read_stiffness_record(half).nsi[:2], there.nsi)


@pytest.mark.parametrize('length', [0, 40, -2])
def test_a_cut_header_is_written_again(path, length):
    begin_record(path, header())
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    with pytest.raises(ValueError, match='header and then rows, got none'):
        read_stiffness_record(path)
    later = header(meta=dict(header().meta, date='Tuesday'))
    assert begin_record(path, later) == 0
    record = read_stiffness_record(path, partial=True)
    assert record.header.meta['date'] == 'Tuesday'


ROWS = [[1., 2., 3.]]


@pytest.mark.parametrize('number, line', [
    (1, 'other'), (1, '[]'), *((2, json.dumps(line)) for line in (
        dict(first=1, nsi=ROWS, step=ROWS),
        dict(first=0, nsi=ROWS, step=2 * ROWS),
        dict(first=0, nsi=5 * ROWS, step=5 * ROWS),
        dict(first=0, nsi=[[1., NAN, 2.]], step=ROWS)))])
def test_a_broken_line_is_named_and_nothing_is_overwritten(half, number, line):
    lines = half.read_text().split('\n')
    lines[number - 1] = line
    half.write_text('\n'.join(lines))
    refused(half, f'plain.jsonl: .* line {number}')


@pytest.mark.parametrize('changes', [
    dict(samples=-1), dict(stage=[0, 3, 3]), dict(stage=[1, 3]),
    dict(stages=2), dict(blocks=[1, 2, 3]), dict(definition='mean')])
def test_a_wrong_header(path, changes):
    begin_record(path, header())
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, **changes}) + '\n')
    refused(path, 'plain.jsonl: .*header: expected')


@pytest.mark.parametrize('changes, match', [
    (dict(samples=5), 'its samples to be 5, got 4'),
    (dict(meta=dict(name='plain', seed=0)),
     r'its meta.shape to be None, got \[3, 32\]'),
    (dict(meta=dict(header().meta, checkpoint='a.pth')),
     "its meta.checkpoint to be 'a.pth', got None"),
])
def test_the_record_of_another_measurement(half, changes, match):
    refused(half, f'{match}.* of another measurement', header(**changes))


def test_what_may_differ_when_a_measurement_continues(path):
    meta = dict(header().meta, checkpoint='a.pth', sha256='1a')
    begin_record(path, header(meta=meta))
    append_rows(path, 0, table(2), table(2))
    changed = dict(meta, date='Tuesday', versions=dict(torch='3'),
                   name='plain_seed0', config='./plain.py',
                   checkpoint='./a.pth')  # of the same digest
    assert begin_record(path, header(meta=changed)) == 2
    record = read_stiffness_record(path, partial=True)
    assert record.header.meta['date'] == 'Monday'
    refused(path, "its meta.sha256 to be '2b'",
            header(meta=dict(meta, sha256='2b')))


def test_the_header_of_a_recorder():
    recorder = SimpleNamespace(
        definition='output', blocks=['layer3.1'], stage=torch.tensor([3]),
        position=torch.tensor([1]),
        found=[SimpleNamespace(stage=stage) for stage in (1, 3, 4)])
    assert RecordHeader.of(recorder, 7, name='plain') == RecordHeader(
        'output', ['layer3.1'], [3], [1], 7, dict(name='plain'), stages=4)
