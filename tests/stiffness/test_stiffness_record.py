import json
import math
from types import SimpleNamespace

import pytest
import torch

from stepnet_mm.stiffness import (
    RecordHeader,
    StiffnessRecord,
    append_rows,
    begin_record,
    read_stiffness_record,
    total_neural_stiffness,
)

INF, NAN = math.inf, math.nan


def header(samples=4, **changes):
    fields = dict(
        definition='residual',
        blocks=['layer1.1', 'layer3.1', 'layer3.2'],
        stage=[1, 3, 3],
        position=[1, 1, 2],
        samples=samples,
        meta=dict(name='plain', seed=0, shape=(3, 32), date='Monday'),
        stages=4)
    return RecordHeader(**{**fields, **changes})


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
    """Neither reading nor going on is possible, and the file stays."""
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match):
        begin_record(path, wanted or header())
    if wanted is None:
        with pytest.raises(ValueError, match=match):
            read_stiffness_record(path, partial=True)
    assert path.read_bytes() == before


def test_header_and_float32_come_back_bit_for_bit(path):
    bits = torch.randint(0, 0x7f800000, (500, 3), dtype=torch.int32)
    nsi = bits.view(torch.float32)
    nsi[:3, 0] = torch.tensor([0., 1e-45, torch.finfo(torch.float32).max])
    assert begin_record(path, header(500)) == 0
    append_rows(path, 0, nsi[:7], -nsi[:7])
    append_rows(path, 7, nsi[7:], -nsi[7:])
    record = read_stiffness_record(path)
    assert record.nsi.dtype == record.step.dtype == torch.float64
    assert torch.equal(record.nsi.float(), nsi)
    assert torch.equal(record.step.float(), -nsi)
    assert record.header == header(
        500, meta=dict(header().meta, shape=[3, 32]))
    assert record.name == 'plain'


def test_what_is_not_finite_is_null(path):
    begin_record(path, header(1))
    append_rows(path, 0, torch.tensor([[INF, NAN, 1.]]),
                torch.tensor([[NAN, INF, .5]]))
    line = path.read_text().splitlines()[1]
    assert json.loads(line) == dict(
        first=0, nsi=[[None, None, 1.]], step=[[None, None, .5]])
    record = read_stiffness_record(path)
    assert record.nsi.tolist() == [[INF, INF, 1.]]
    assert record.step.isnan().tolist() == [[True, True, False]]


def test_an_unfinished_record(half):
    with pytest.raises(ValueError, match='expected 4 samples, got 2.*again'):
        read_stiffness_record(half)
    assert read_stiffness_record(half, partial=True).nsi.shape == (2, 3)
    assert begin_record(half, header()) == 2
    append_rows(half, 2, table(0), table(0))
    append_rows(half, 2, table(2), table(2))
    assert read_stiffness_record(half).nsi.shape == (4, 3)
    assert begin_record(half, header()) == 4


@pytest.mark.parametrize('cut', [1, 20])
def test_a_cut_last_line_is_dropped_and_measured_again(half, cut):
    whole = half.read_bytes()
    kept = read_stiffness_record(half, partial=True).nsi[:1]
    half.write_bytes(whole[:-cut])
    assert torch.equal(read_stiffness_record(half, partial=True).nsi, kept)
    assert begin_record(half, header()) == 1
    append_rows(half, 1, table(3, 5.), table(3))
    record = read_stiffness_record(half)
    assert torch.equal(record.nsi[:1], kept)
    assert (record.nsi[1:] >= 5).all()


@pytest.mark.parametrize('length', [0, 40, -1])
def test_a_cut_header_is_written_again(path, length):
    begin_record(path, header())
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    with pytest.raises(ValueError, match='stiffness record|4 samples, got 0'):
        read_stiffness_record(path)
    later = header(meta=dict(header().meta, date='Tuesday'))
    assert begin_record(path, later) == 0
    record = read_stiffness_record(path, partial=True)
    assert record.header.meta['date'] == 'Tuesday'


ROWS = [[1., 2., 3.]]


@pytest.mark.parametrize('line', [
    b'\x93NUMPY\x01\x00\xff\xfe',
    b'[' * 100_000,
    dict(first=0, nsi=ROWS),
    dict(first=1, nsi=ROWS, step=ROWS),
    dict(first=0, nsi=ROWS, step=2 * ROWS),
    dict(first=0, nsi=[], step=[]),
    dict(first=0, nsi=[[1., 2.]], step=[[1., 2.]]),
    dict(first=0, nsi=[[1., 2., -.5]], step=ROWS),
    dict(first=0, nsi=[[1., 2., 1e308]], step=ROWS),
    dict(first=0, nsi=[[1, 2, 10**400]], step=ROWS),
    dict(first=0, nsi=5 * ROWS, step=5 * ROWS),
])
def test_a_broken_line_is_named_and_nothing_is_overwritten(half, line):
    lines = half.read_bytes().split(b'\n')
    lines[1] = line if isinstance(line, bytes) else json.dumps(line).encode()
    half.write_bytes(b'\n'.join(lines))
    refused(half, 'plain.jsonl: .* line 2')


@pytest.mark.parametrize('text', [
    b'hello', b'\n', b'\x89PNG\r\n\x1a\n\x00\xff', b'[1]\n',
    b'[' * 100_000 + b'\n',
    b'{"format": "stepnet_mm stiffness record 0"}\n',
    b'{"format": "stepnet_mm stiffness record 1"}\n'
])
def test_other_files_stay_as_they_are(tmp_path, text):
    path = tmp_path / 'other.jsonl'
    path.write_bytes(text)
    refused(path, 'other.jsonl: ')


@pytest.mark.parametrize('changes', [
    dict(samples=-1), dict(blocks='layer1'), dict(stage=[0, 3, 3]),
    dict(stage=[1, 3]), dict(stages=2), dict(meta=[1]),
    dict(blocks=[1, 2, 3]), dict(blocks=[], stage=[], position=[]),
    dict(definition='mean')])
def test_a_wrong_header(path, changes):
    match = ("definition: expected .*got 'mean'" if 'definition' in changes
             else 'expected a name, a stage')
    with pytest.raises(ValueError, match=match):
        header(**changes)
    begin_record(path, header())
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, **changes}) + '\n')
    refused(path, f'plain.jsonl: .*{match}')


@pytest.mark.parametrize('changes, match', [
    (dict(samples=5), 'its samples to be 5, got 4'),
    (dict(definition='output'), "its definition to be 'output', got 'res"),
    (dict(blocks=['a', 'b', 'c']), 'its blocks to be '),
    (dict(meta=dict(name='plain', seed=0)),
     r'its meta.shape to be None, got \[3, 32\]'),
    (dict(meta=dict(header().meta, checkpoint='a.pth')),
     "its meta.checkpoint to be 'a.pth', got None"),
])
def test_the_record_of_another_measurement(half, changes, match):
    refused(half, f'{match}.* of another measurement', header(**changes))


def test_weights_of_one_digest_may_lie_elsewhere(path):
    meta = dict(checkpoint='a.pth', sha256='1a')
    begin_record(path, header(meta=meta))
    assert begin_record(path, header(meta=dict(meta, checkpoint='./a.pth'))
                        ) == 0
    with pytest.raises(ValueError, match="its meta.sha256 to be '2b'"):
        begin_record(path, header(meta=dict(meta, sha256='2b')))


def test_name_place_and_time_may_change(half):
    meta = dict(header().meta, date='Tuesday', versions=dict(torch='3'),
                name='plain_seed0', config='./plain.py')
    assert begin_record(half, header(meta=meta)) == 2
    record = read_stiffness_record(half, partial=True)
    assert record.header.meta['date'] == 'Monday'


def test_no_file(path):
    with pytest.raises(FileNotFoundError, match='plain.jsonl'):
        read_stiffness_record(path)


def test_samples_that_are_not_finite_are_left_out_and_counted():
    nsi = torch.tensor([[1., 2., 4.], [INF, 1., 1.], [3., 1., 1.]]).double()
    record = StiffnessRecord(header(3), nsi, torch.full_like(nsi, NAN))
    nsi = record.nsi[[0, 2]]
    assert record.lost == 1
    assert torch.equal(record.finite_nsi, nsi)
    tns = total_neural_stiffness(nsi, record.stage)
    assert torch.equal(record.tns(), tns)
    assert record.summary()['tns'] == tns.mean().item()
    assert record.summary()['nonfinite'] == 1
    means = [row['mean'] for row in record.summary_by_block()]
    assert means == nsi.mean(0).tolist()
    other = record.renamed('SE')
    assert (record.name, other.name) == ('plain', 'SE')
    assert other.nsi is record.nsi
    assert other.header.meta['date'] == 'Monday'


def test_the_header_of_a_recorder():
    recorder = SimpleNamespace(
        definition='output', blocks=['layer3.1'], stage=torch.tensor([3]),
        position=torch.tensor([1]),
        found=[SimpleNamespace(stage=stage) for stage in (1, 3, 4)])
    assert RecordHeader.of(recorder, 7, name='plain') == RecordHeader(
        'output', ['layer3.1'], [3], [1], 7, dict(name='plain'), stages=4)
