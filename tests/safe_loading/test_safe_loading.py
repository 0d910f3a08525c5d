"""What loads, and how an error says what does not."""
import errno
import io
import os
import pickle
import random
import re
import threading
from argparse import Namespace
from collections import Counter, OrderedDict
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PureWindowsPath
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.optim import OneCycleParamScheduler
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading import unpickler
from stepnet_mm.safe_loading.loaders import (
    UnsafeCheckpointError,
    register_safe_loaders,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'a.pth'


def load(path, *args):
    return CheckpointLoader.load_checkpoint(str(path), *args)


def saved(value, path, **kwargs):
    """The value after a save and a load."""
    torch.save(value, path, **kwargs)
    return load(path)


@pytest.fixture
def register(monkeypatch):
    """register(prefix, loader), for one test."""
    monkeypatch.setattr(CheckpointLoader, '_schemes',
                        dict(CheckpointLoader._schemes))

    def register(prefix, loader):
        CheckpointLoader.register_scheme(prefix, loader)
        register_safe_loaders()

    return register


@pytest.mark.core
def test_torch_load_is_as_before(register):
    """One thread waits for the other, or would be given the true one."""
    theirs, during, threads = torch.load, [], []

    def load_twice(filename, map_location=None):
        if filename == 'some://outer':
            threads.append(threading.Thread(
                target=load, args=('some://inner', )))
            threads[0].start()
            threads[0].join(.1)
            assert not during
        during.append(torch.load)
        return {}

    register('some://', load_twice)
    load('some://outer')
    threads[0].join()
    assert len(during) == 2 and theirs not in during
    assert torch.load is torch.serialization.load is theirs


@pytest.mark.core
@pytest.mark.parametrize('zipped, name', [
    (True, 'NO_WEIGHTS_ONLY'), (False, 'WEIGHTS_ONLY')])
def test_a_training_state_loads(path, zipped, name, monkeypatch):
    monkeypatch.setenv(f'TORCH_FORCE_{name}_LOAD', '1')
    scheduler = OneCycleParamScheduler(
        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=.1),
        'lr', eta_max=1., total_steps=10)
    # As where a dataset's config sets metainfo.
    meta = ConfigDict(classes=('cat', ), palette=[dict(rgb=(1, 2, 3))])
    loaded = saved(dict(
        message_hub=dict(loss=HistoryBuffer([1., 2.], [1, 1])),
        param_schedulers=[scheduler.state_dict()],
        meta=dict(seed=np.int64(3), best=np.float64(.5), again=meta,
                  dataset_meta=meta),
        sizes=np.arange(3, dtype=np.uint32),
        args=Namespace(lr=.1, data=Namespace(size=3))), path,
        _use_new_zipfile_serialization=zipped)
    assert loaded['message_hub']['loss'].mean() == 1.5
    assert loaded['param_schedulers'][0]['total_steps'] == 10
    assert loaded['sizes'].tolist() == [0, 1, 2]
    assert loaded['args'] == Namespace(lr=.1, data=Namespace(size=3))
    plain = loaded['meta']['dataset_meta']
    assert loaded['meta'] == dict(
        seed=3, best=.5, again=meta.to_dict(), dataset_meta=meta.to_dict())
    assert type(plain) is type(plain['palette'][0]) is dict
    assert plain is loaded['meta']['again']


@pytest.mark.core
@pytest.mark.parametrize('module', ['numpy.core', 'numpy._core'])
def test_numpy_names_of_both_major_versions_load(module):
    pickled = pickle.dumps(HistoryBuffer([1., 2.], [1, 1]), 2)
    here = np.zeros(0).__reduce__()[0].__module__.encode()
    assert b'c' + here in pickled
    there = f'{module}.multiarray'.encode()
    loaded = unpickler.load(io.BytesIO(pickled.replace(here, there)))
    assert loaded.mean() == 1.5


def tagged(tensor):
    tensor.tag = 'tag'
    return tensor


#: What torch itself loads as weights.
WEIGHTS = (
    torch.nn.Parameter(torch.ones(2)), tagged(torch.nn.Parameter(
        torch.ones(2))), tagged(torch.ones(2)), torch.zeros(0),
    torch.ones(4)[1:3], torch.ones(2, dtype=torch.bfloat16),
    torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.bool),
    torch.zeros(2, device='meta'), torch.Size([2]), torch.device('cpu'),
    torch.float16, torch.strided, b'', b'\xff', {1, 2}, 1j, slice(2), 2**70,
    -1.5, None, {(0, 'a'): 1, 2: 3, np.int64(4): 5, torch.half: 6, None: 7},
    'ü' * 300, (), [(1, [2])], OrderedDict(a=1), Counter('aab'),
    np.float32(.5), np.bool_(True), np.zeros((2, 0)), np.str_('a'),
    np.array([['cat', 'dog']]), np.array([b'a', b'']),
    np.asfortranarray(np.eye(2, dtype=np.int16)))


@pytest.mark.core
@pytest.mark.parametrize('protocol', [2, 4])
def test_all_kinds_of_weights_load(path, protocol):
    for value in WEIGHTS:
        first, second = saved([value, value], path, pickle_protocol=protocol)
        assert type(first) is type(value)
        assert repr(first) == repr(second) == repr(value)
    for kind in '>f4', '<f4', '>i2', '>c16':
        assert saved(np.arange(3, dtype=kind), path).tolist() == [0, 1, 2]
    assert np.dtype('f4').isnative and np.dtype('i2').isnative


@pytest.mark.core
@pytest.mark.parametrize('protocol', [2, 4])
def test_what_stock_resumes_comes_back(path, protocol):
    """In a message hub, from a training without this package."""
    noon = datetime(2026, 11, 28, 12, tzinfo=timezone.utc)
    tokyo = timezone(timedelta(hours=9), 'JST')
    values = [
        range(1, 9, 2), re.compile('a+', re.I), re.compile(b'a'),
        bytearray(), bytearray(b'a\xff'), np.str_(''), np.bytes_(b''),
        noon, noon.astimezone(tokyo), noon.timetz(), noon.date(), tokyo,
        noon.replace(tzinfo=None), noon - datetime(1, 1, 1, tzinfo=tokyo),
        Decimal('1.50'), Fraction(1, 3), Path('/a/b'), Path(),
        PureWindowsPath('c:/a'), {((1, 2), 3): 4, 2**70: 5}]
    loaded = saved(dict(a=values), path, pickle_protocol=protocol)['a']
    assert [*map(repr, loaded)] == [*map(repr, values)]
    assert [*map(type, loaded)] == [*map(type, values)]
    assert {frozenset({((1, ), )})} == saved({frozenset({((1, ), )})}, path)


@pytest.mark.core
@pytest.mark.parametrize('device, zipped', [
    ('cuda:0', True), ('cuda:0', False), ('unknown:0', True)])
def test_map_location_is_asked(path, device, zipped, monkeypatch):
    monkeypatch.setattr(torch.serialization, 'location_tag', lambda _: device)
    torch.save(dict(a=torch.ones(3)), path,
               _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"a\.pth.* map_location='cpu'"):
        load(path)
    assert load(path, 'cpu')['a'].tolist() == [1] * 3


@pytest.mark.parametrize('make', [str, os.mkdir, os.mkfifo])
def test_what_cannot_be_read_is_named(path, make):
    make(path)
    with pytest.raises(FileNotFoundError, match=r'a\.pth: expected'):
        load(path)


#: Whole files that are hard to read.
HARD = [b'', b'\0', b'\n', b'[' * 10**5, b'1' * 5000 + b'\n', b'\x80\x02.',
        b'PK\3\4', b'PK\5\6' + bytes(18), b'\x93NUMPY\1\0']


@pytest.mark.core
@pytest.mark.parametrize('zipped', [True, False])
def test_damage_is_an_error_that_names_the_file(path, zipped):
    """Pieces that are lost, doubled or random."""
    torch.save(dict(a=OrderedDict(b=torch.ones(9)), c=np.arange(3)), path,
               _use_new_zipfile_serialization=zipped)
    content, choose = path.read_bytes(), random.Random(0)
    for number in range(80):
        start = choose.randrange(len(content))
        end = start + choose.choice([0, 1, 2, 8, 10**9])
        piece = choose.choice([b'', content[:50], choose.randbytes(8)])
        changed = content[:start] + piece + content[end:]
        path.write_bytes(HARD[number] if number < len(HARD) else changed)
        try:
            load(path)
        except (ValueError, UnsafeCheckpointError) as error:
            assert type(error) in (ValueError, UnsafeCheckpointError)
            assert all(part in str(error) for part in (
                'expected', 'got', str(path)))


@pytest.mark.parametrize('place, bits, reason', [
    (38, 0x10, 'data/0 is marked as a folder'),  # torch reads nothing then
    (16, 1, 'the checksum of its record data/0 is wrong')])
def test_what_torch_does_not_look_at(path, place, bits, reason):
    """In the directory of the zip file."""
    torch.save(dict(a=torch.arange(99.), b=torch.ones(9)), path)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b'PK\x01\x02', 0, content.rindex(b'/data/0'))
    content[entry + place] ^= bits
    path.write_bytes(content)
    assert torch.load(path)['a'].numel() == 99
    with pytest.raises(ValueError, match=rf'a\.pth: expected .*{reason}'):
        load(path)


def test_a_file_that_was_written_without_checksums(path):
    options = getattr(torch.serialization, 'set_crc32_options', None)
    if options is None:
        pytest.skip('this torch always writes them')
    options(False)
    try:
        loaded = saved(torch.arange(9), path)
    finally:
        options(True)
    assert loaded.tolist() == [*range(9)]


@pytest.mark.parametrize('error, prefix', [
    (OSError(errno.ESTALE, 'Stale file handle'), ''),
    (OSError('no route'), 'some://'),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 'some://')])
def test_what_is_no_damage_is_told_apart(path, monkeypatch, register, error,
                                          prefix):
    torch.save(torch.zeros(1), path)
    monkeypatch.setattr(torch.serialization, '_load', Mock(side_effect=error))
    register('some://', lambda filename, map_location=None: torch.load(
        filename.removeprefix('some://'), map_location))
    kind, said = (OSError, f'{prefix}{path}: expected') if isinstance(
        error, OSError) else (MemoryError, 'allocate memory')
    with pytest.raises(kind, match=said):
        load(f'{prefix}{path}')
