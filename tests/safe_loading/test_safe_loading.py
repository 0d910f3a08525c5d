import errno
import io
import os
import pickle
import struct
import threading
import zipfile
from collections import Counter, OrderedDict
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading.loaders import (
    UnsafeCheckpointError,
    register_safe_loaders,
)


def load(path, *args):
    return CheckpointLoader.load_checkpoint(str(path), *args)


@pytest.mark.core
@pytest.mark.parametrize('module', ['numpy.core', 'numpy._core'])
def test_numpy_names_of_both_major_versions_load(tmp_path, module):
    buffer = HistoryBuffer([1., 2.], [1, 1])
    torch.save(dict(a=buffer), tmp_path / 'a.pth')
    here = np.zeros(0).__reduce__()[0].__module__.encode()
    there = f'{module}.multiarray'.encode()
    with zipfile.ZipFile(tmp_path / 'a.pth') as source, zipfile.ZipFile(
            tmp_path / 'b.pth', 'w') as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith('data.pkl'):
                assert here in data
                data = data.replace(b'c' + here, b'c' + there)
            target.writestr(name, data)
    loaded = load(tmp_path / 'b.pth')
    assert loaded['a'].mean() == 1.5


@pytest.mark.core
def test_every_scheme_is_safe_and_registering_twice_changes_nothing():
    before = dict(CheckpointLoader._schemes)
    register_safe_loaders()
    assert dict(CheckpointLoader._schemes) == before
    assert all(loader.weights_only for loader in before.values())


@pytest.mark.core
def test_torch_load_is_as_before(monkeypatch):
    theirs, during = torch.load, []

    def load_from_another_thread(filename, map_location=None):
        during.append(torch.load)
        thread = threading.Thread(
            target=CheckpointLoader.load_checkpoint, args=('inner://a', ))
        if filename == 'outer://a':
            thread.start()
            thread.join()
            during.append(torch.load)
        return {}

    monkeypatch.setattr(CheckpointLoader, '_schemes',
                        dict(CheckpointLoader._schemes))
    CheckpointLoader.register_scheme(
        ['outer://', 'inner://'], load_from_another_thread)
    register_safe_loaders()
    CheckpointLoader.load_checkpoint('outer://a')
    assert len(during) == 3 and theirs not in during
    assert torch.load is torch.serialization.load is theirs


@pytest.mark.core
@pytest.mark.parametrize('zipped, name', [
    (True, 'NO_WEIGHTS_ONLY'), (False, 'WEIGHTS_ONLY')])
def test_a_training_state_loads(tmp_path, zipped, name, monkeypatch):
    monkeypatch.setenv(f'TORCH_FORCE_{name}_LOAD', '1')
    buffer = HistoryBuffer([1., 2.], [1, 1])
    state = dict(
        message_hub=dict(log_scalars=dict(loss=buffer)),
        meta=dict(seed=np.int64(3), best=np.float64(.5)),
        sizes=np.arange(3, dtype=np.uint32))
    torch.save(state, tmp_path / 'a.pth',
               _use_new_zipfile_serialization=zipped)
    loaded = load(tmp_path / 'a.pth')
    assert loaded['message_hub']['log_scalars']['loss'].mean() == 1.5
    assert loaded['meta'] == dict(seed=3, best=.5)
    assert loaded['sizes'].tolist() == [0, 1, 2]


@pytest.mark.core
def test_metainfo_of_a_config_loads_as_a_plain_dict(tmp_path):
    """Such as ``dataset_meta``, where a dataset's config sets metainfo."""
    meta = ConfigDict(classes=('cat', ), palette=[dict(rgb=(1, 2, 3))])
    torch.save(dict(meta=dict(dataset_meta=meta, again=meta)),
               tmp_path / 'a.pth')
    loaded = load(tmp_path / 'a.pth')['meta']
    assert loaded['dataset_meta'] is loaded['again']
    assert type(loaded['again']['palette'][0]) is type(loaded['again']) is dict
    assert loaded['again'] == meta.to_dict()


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
    torch.float16, torch.strided, b'', b'\xff',
    {1, 2}, 1j, slice(2), 2**70, -1.5, None, 'ü' * 300, (), [(1, [2])],
    OrderedDict(a=1), Counter('aab'), np.float32(.5), np.bool_(True),
    np.zeros((2, 0)), np.asfortranarray(np.eye(2, dtype=np.int16)))


@pytest.mark.core
@pytest.mark.parametrize('protocol', [2, 4])
def test_all_kinds_of_weights_load(tmp_path, protocol):
    path = tmp_path / 'a.pth'
    for value in WEIGHTS:
        torch.save([value, value], path, pickle_protocol=protocol)
        first, second = load(path)
        assert type(first) is type(value)
        assert repr(first) == repr(second) == repr(value)
        assert getattr(first, 'tag', None) == getattr(value, 'tag', None)


@pytest.mark.core
def test_the_metadata_alone_of_a_state_dict_load(tmp_path):
    state = torch.nn.BatchNorm2d(3).state_dict()
    metadata = dict(state._metadata)
    vars(state).update(copy='hides a method', own=1)
    torch.save(state, tmp_path / 'a.pth')
    assert vars(load(tmp_path / 'a.pth')) == dict(_metadata=metadata)
    assert metadata


@pytest.mark.core
def test_map_location_is_asked(tmp_path):
    asked = []
    torch.save(dict(a=torch.zeros(1)), tmp_path / 'a.pth')
    load(tmp_path / 'a.pth',
         lambda storage, place: asked.append(place) or storage)
    assert asked == ['cpu']


@pytest.mark.core
@pytest.mark.parametrize('zipped', [True, False])
def test_a_device_that_is_not_here(tmp_path, zipped, monkeypatch):
    monkeypatch.setattr(
        torch.serialization, 'location_tag', lambda _: 'cuda:0')
    torch.save(dict(a=torch.ones(3)), tmp_path / 'a.pth',
               _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError, match=r"a\.pth.* map_location='cpu'"):
        load(tmp_path / 'a.pth')
    assert load(tmp_path / 'a.pth', 'cpu')['a'].tolist() == [1] * 3


@pytest.mark.core
def test_a_one_cycle_scheduler_loads(tmp_path):
    from mmengine.optim import OneCycleParamScheduler
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=.1)
    scheduler = OneCycleParamScheduler(
        optimizer, 'lr', eta_max=1., total_steps=10)
    torch.save(scheduler.state_dict(), tmp_path / 'a.pth')
    loaded = load(tmp_path / 'a.pth')
    assert loaded['total_steps'] == 10


def cut(path):
    torch.save(dict(a=torch.zeros(1000)), path)
    os.truncate(path, 2000)


@pytest.mark.parametrize('make, error, why', [
    (str, FileNotFoundError, 'got no such file; check load_from'),
    (os.mkdir, ValueError, 'a regular file'),
    (os.mkfifo, ValueError, 'a regular file'),
    (lambda path: path.touch(), ValueError, 'a whole'),
    (lambda path: path.write_bytes(b'no checkpoint'), ValueError, 'a whole'),
    (cut, ValueError, 'a whole')])
def test_what_cannot_be_read_is_named(tmp_path, make, error, why):
    make(tmp_path / 'a.pth')
    with pytest.raises(error, match=r'a\.pth: expected .*' + why) as info:
        load(tmp_path / 'a.pth')
    assert 'weights_only' not in str(info.value)


HEAD = b''.join(pickle.dumps(value, 2) for value in (
    torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION,
    {}))
#: What a file announces and does not have.
HUGE = dict(
    text=b'\x80\x04\x8d' + struct.pack('<Q', 2**50),
    bytes=b'\x80\x04\x8e' + struct.pack('<Q', 2**40),
    frame=b'\x80\x04\x95' + struct.pack('<Q', 2**45),
    number=b'\x80\x02\x8b\xff\xff\xff\x7f')


@pytest.mark.parametrize('announced', HUGE.values(), ids=HUGE)
def test_a_length_that_is_not_there(tmp_path, announced):
    (tmp_path / 'a.pth').write_bytes(HEAD + announced)
    with pytest.raises(ValueError, match=r'a\.pth.* announced, 0 are left'):
        load(tmp_path / 'a.pth')


@pytest.fixture
def zipped(tmp_path):
    """zipped(place, bits) -> a file that differs there in its directory."""

    def change(place, bits):
        path = tmp_path / 'a.pth'
        torch.save(dict(a=torch.arange(99.), b=torch.ones(9)), path)
        content = bytearray(path.read_bytes())
        entry = content.rindex(b'PK\x01\x02', 0, content.rindex(b'/data/0'))
        content[entry + place] ^= bits
        path.write_bytes(content)
        return str(path)

    return change


@pytest.mark.parametrize('place, bits, reason', [
    (38, 0x10, 'data/0 is marked as a folder'),  # torch reads nothing then
    (16, 1, 'the checksum of its record data/0 is wrong')])
def test_what_torch_does_not_look_at(zipped, place, bits, reason):
    path = zipped(place, bits)
    assert torch.load(path)['a'].numel() == 99
    with pytest.raises(ValueError, match=rf'a\.pth: expected .*{reason}'):
        load(path)


def test_a_file_that_was_written_without_checksums(tmp_path):
    options = getattr(torch.serialization, 'set_crc32_options', None)
    if options is None:
        pytest.skip('this torch always writes them')
    options(False)
    try:
        torch.save(torch.arange(9), tmp_path / 'a.pth')
    finally:
        options(True)
    loaded = load(tmp_path / 'a.pth')
    assert loaded.tolist() == [*range(9)]


def legacy(content):
    with io.BytesIO() as file:
        torch.save(content, file, _use_new_zipfile_serialization=False)
        return file.getvalue()


def test_a_legacy_file_without_its_storages(tmp_path):
    """torch gives out what the memory held."""
    whole = legacy(dict(a=torch.arange(6.)))
    cut = whole[:whole.rindex(b'\x80\x02]')] + pickle.dumps([], 2)
    (tmp_path / 'a.pth').write_bytes(cut)
    assert torch.load(tmp_path / 'a.pth', weights_only=False)['a'].numel() == 6
    with pytest.raises(ValueError, match=r'a\.pth.* no content of the stor'):
        load(tmp_path / 'a.pth')


def test_a_legacy_storage_larger_than_the_file(tmp_path):
    whole = legacy(dict(a=torch.zeros(10)))
    assert b'K\nN' in whole
    (tmp_path / 'a.pth').write_bytes(
        whole.replace(b'K\nN', b'\x8a\x06' + b'\xff' * 5 + b'\x0fN'))
    with pytest.raises(ValueError, match=r'a\.pth.* are more than it has'):
        load(tmp_path / 'a.pth')


def test_arrays_of_either_byte_order(tmp_path):
    kinds = '>f4', '<f4', '>i2', '>c16', '|u1'
    torch.save([np.arange(3, dtype=kind) for kind in kinds],
               tmp_path / 'a.pth')
    loaded = load(tmp_path / 'a.pth')
    assert [array.tolist() for array in loaded] == [[0, 1, 2]] * len(kinds)
    assert np.dtype('f4').isnative and np.dtype('i2').isnative


@pytest.mark.parametrize('error, prefix', [
    (OSError(errno.ESTALE, 'Stale file handle'), ''),
    (OSError('no route'), 'some://'), (MemoryError(), ''),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 'some://')])
def test_what_is_no_damage_names_the_file(tmp_path, monkeypatch, error,
                                          prefix):
    reading = Future()  # which raises in a module of Python's own
    reading.set_exception(error)

    def load_from_somewhere(filename, map_location=None):
        return torch.load(filename.removeprefix('some://'), map_location)

    torch.save(torch.zeros(1), tmp_path / 'a.pth')
    monkeypatch.setattr(torch.serialization, '_load',
                        lambda *_, **__: reading.result())
    monkeypatch.setattr(CheckpointLoader, '_schemes',
                        dict(CheckpointLoader._schemes))
    CheckpointLoader.register_scheme('some://', load_from_somewhere)
    register_safe_loaders()
    kind = OSError if isinstance(error, OSError) else MemoryError
    with pytest.raises(kind, match=rf'{prefix}{tmp_path}/a\.pth: expected'):
        CheckpointLoader.load_checkpoint(f'{prefix}{tmp_path}/a.pth')


@pytest.mark.parametrize('content', [
    b'no checkpoint', b'PK\3\4', HEAD, pickle.dumps(os.mkdir, 2)])
def test_advice_to_load_in_full_reaches_nobody(content, monkeypatch, capsys):
    """Neither torch's own nor what mmengine makes of it."""

    class Backend:

        @staticmethod
        def get(filename):
            return content

    monkeypatch.setattr('mmengine.runner.checkpoint.get_file_backend',
                        lambda *_, **__: Backend)
    with pytest.raises((ValueError, UnsafeCheckpointError),
                       match='s3://a/b.pth: expected') as info:
        load('s3://a/b.pth')
    assert 'weights_only' not in f'{info.value}{capsys.readouterr()}'
