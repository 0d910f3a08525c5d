"""Files that would run something: refused, and nothing of them has run."""
import copyreg
import io
import os
import pickle
import shutil
import struct
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from mmengine.logging import HistoryBuffer
from mmengine.runner.checkpoint import CheckpointLoader

from stepnet_mm.safe_loading.loaders import (
    UnsafeCheckpointError,
    register_safe_loaders,
)


class Made:
    """A folder."""

    def __new__(cls, path):
        os.mkdir(path)
        return super().__new__(cls)


MADE = f'c{__name__}\nMade\n'.encode()
HISTORY = b'cmmengine.logging.history_buffer\nHistoryBuffer\n'


def text(string):
    data = str(string).encode()
    return b'X' + struct.pack('<I', len(data)) + data


def call(name, *args):
    return name + b'(' + b''.join(map(text, args)) + b'tR'


MEAN = call(b'c__builtin__\ngetattr\n(' + HISTORY + text('mean') + b'tR')[:-3]
EVAL = '__import__("os").mkdir({!r})'

#: Each makes a folder where it is unpickled in full.
RUNNING = dict(
    a_call=lambda path: b'\x80\x02' + call(b'cposix\nmkdir\n', path),
    eval=lambda path: b'\x80\x02' + call(
        b'c__builtin__\neval\n', EVAL.format(path)),
    a_dotted_name=lambda path: b'\x80\x04' + call(
        text('os') + text('path.os.mkdir') + b'\x93', path),
    protocol_0=lambda path: b"cposix\nmkdir\n(S'%s'\ntR" % path.encode(),
    inst=lambda path: b'(' + text(path) + b'iposix\nmkdir\n',
    obj=lambda path: b'(cposix\nmkdir\n' + text(path) + b'o',
    newobj=lambda path: b'\x80\x02' + MADE + text(path) + b'\x85\x81',
    newobj_ex=lambda path: b'\x80\x04' + MADE + text(path) + b'\x85}\x92',
    extension=lambda path: b'\x80\x02' + call(b'\x82\xf0', path),
    build=lambda path: b'\x80\x02cargparse\nNamespace\n)\x81}' + text(
        'a') + call(b'cposix\nmkdir\n', path) + b'sb',
    in_a_persistent_id=lambda path: b'\x80\x02(' + text('storage') + call(
        b'cposix\nmkdir\n', path) + text('0') + text('cpu') + b'K\x01tQ')
ARRAY = b'cnumpy.core.multiarray\n_reconstruct\n(tR'
#: These ask for what is on no list, or not on that one.
STRANGE = dict(
    a_name=b'cposix\nmkdir\n',
    defaults_of_a_function=MEAN + b'N}' + text('__defaults__') + b'K\x01\x85'
    b's\x86b',
    attributes_of_a_class=HISTORY + b'N}' + text('mean') + b'Ns\x86b',
    a_call_of_a_method=MEAN + b')R',
    a_call_of_a_class=HISTORY + b')R',
    getattr_of_anything=b'c__builtin__\ngetattr\n(' + HISTORY + text(
        '__init__') + b'tR',
    getattr_of_itself=b'c__builtin__\ngetattr\n(c__builtin__\ngetattr\n'
    + text('__self__') + b'tR',  # the module, and so eval
    a_new_parameter=b'ctorch.nn.parameter\nParameter\n)\x81',
    a_buffer_with_arguments=HISTORY + text('a') + b'\x85\x81',
    items_of_an_object=HISTORY + b')\x81' + text('a') + b'Ns',
    items_of_a_list=b']' + text('a') + b'Ns',
    an_element_of_an_object=HISTORY + b')\x81Na',
    elements_of_an_object=HISTORY + b')\x81(NNe',
    elements_of_a_set=b']\x8f(NN\x90Na',
    a_structure=call(b'cnumpy\ndtype\n', 'f8,O'),
    a_negative_size=call(b'cnumpy\ndtype\n', 'S-5'),
    a_subclass=b'ctorch._tensor\n_rebuild_from_type_v2\n(' + MEAN
    + b'ctorch\nTensor\n)}tR',
    sparse=b'ctorch._utils\n_rebuild_sparse_tensor\n',
    quantized=b'ctorch._utils\n_rebuild_qtensor\n',
    # Python and numpy would end here, not only fail.
    a_short_list=ARRAY + b'(K\x01K\x02\x85' + call(
        b'cnumpy\ndtype\n', 'f8') + b'\x89]NatbK\x01',
    an_address=call(b'cnumpy\ndtype\n', 'O8'),
    a_module=b'(' + text('module') + b'ctorch.storage\nUntypedStorage\n'
    + text('a') + text('b') + b'tQ',
    an_odd_id=b'K\x01Q',
    a_persistent_id_of_protocol_0=b'Pstorage\n')


def zipped(file, pickled, value=(), old=b''):
    """An archive of torch.save with another pickle, or another part of it."""
    whole = io.BytesIO()
    torch.save(value, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(
            file, 'w') as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith('data.pkl'):
                assert old in content
                content = content.replace(old or content, pickled)
            target.writestr(name, content)


#: What a file of torch before 1.6 begins with.
HEAD = b''.join(pickle.dumps(value, 2) for value in (
    torch.serialization.MAGIC_NUMBER, torch.serialization.PROTOCOL_VERSION,
    {}))


def legacy(file, pickled):
    file.write_bytes(HEAD + pickled + pickle.dumps([], 2))


def tar(file, pickled):
    """What torch 0.1 wrote, behind the number of later files."""
    magic = pickle.dumps(torch.serialization.MAGIC_NUMBER, 2).decode('latin1')
    with tarfile.open(file, 'w', format=tarfile.USTAR_FORMAT,
                      encoding='latin1') as archive:
        for name in (magic, 'storages', 'tensors', 'pickle'):
            data = pickled if name == 'pickle' else pickle.dumps(0, 2) * 3
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


FORMS = zipped, legacy, tar


def load(path):
    return CheckpointLoader.load_checkpoint(str(path))


def load_path(filename, map_location=None):
    return torch.load(
        filename[len('path://'):], map_location, weights_only=False)


def load_bytes(filename, map_location=None):
    content = Path(filename[len('bytes://'):]).read_bytes()
    return torch.serialization.load(io.BytesIO(content), map_location)


@pytest.fixture(autouse=True)
def ways(monkeypatch):
    """Remote loaders, a user's way around weights_only, and an extension."""
    monkeypatch.setattr(CheckpointLoader, '_schemes',
                        dict(CheckpointLoader._schemes))
    CheckpointLoader.register_scheme('path://', load_path)
    CheckpointLoader.register_scheme('bytes://', load_bytes)
    register_safe_loaders()
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    copyreg.add_extension('posix', 'mkdir', 240)
    yield
    copyreg.remove_extension('posix', 'mkdir', 240)


def refused(file, why=''):
    for prefix in ('', 'path://', 'bytes://'):
        with pytest.raises(UnsafeCheckpointError, match=f'{file.name}.*{why}'):
            load(f'{prefix}{file}')


def run_in_full(pickled):
    unpickler = pickle._Unpickler(io.BytesIO(pickled))
    unpickler.persistent_load = list
    with suppress(Exception):  # afterwards
        unpickler.load()


@pytest.mark.core
@pytest.mark.parametrize('name', RUNNING)
def test_what_runs_is_refused(tmp_path, name):
    victim = tmp_path / 'it_ran'
    pickled = RUNNING[name](str(victim)) + b'.'
    run_in_full(pickled)
    victim.rmdir()
    for form in FORMS:
        form(tmp_path / f'{form.__name__}.pth', pickled)
        refused(tmp_path / f'{form.__name__}.pth')
        assert not victim.exists()
    # Of a file of torch before 1.6 the magic number is unpickled first.
    (tmp_path / 'head.pth').write_bytes(pickled)
    with pytest.raises(ValueError, match='another file or one cut off'):
        load(tmp_path / 'head.pth')
    assert not victim.exists()


def test_a_tar_archive_is_not_unpacked(tmp_path, monkeypatch):
    """Its members may be links to other files."""
    opened = []
    tar(tmp_path / 'a.pth', b'\x80\x02N.')
    monkeypatch.setattr(tarfile, 'open', lambda *_, **__: opened.append(_))
    refused(tmp_path / 'a.pth')
    assert not opened


@pytest.mark.core
@pytest.mark.parametrize('pickled', STRANGE.values(), ids=STRANGE)
def test_what_is_on_no_list_is_refused(tmp_path, pickled):
    for form in (zipped, legacy):
        form(tmp_path / 'bad.pth', b'\x80\x02' + pickled + b'.')
        with pytest.raises(UnsafeCheckpointError, match=r'bad\.pth'):
            load(tmp_path / 'bad.pth')


@pytest.mark.core
def test_of_the_state_of_a_numpy_type_the_byte_order_alone_is_taken(tmp_path):
    state = b'(K\x03' + text('>') + b'NNNK\x63K\x63K\x01tb.'
    zipped(tmp_path / 'a.pth',
           b'\x80\x02' + call(b'cnumpy\ndtype\n', 'f8') + state)
    assert load(tmp_path / 'a.pth').itemsize == 8


@pytest.mark.core
def test_the_methods_of_a_class_stay_as_they_are(tmp_path):
    HistoryBuffer([1.], [1])  # fills the table
    before = dict(HistoryBuffer._statistics_methods)
    state = HISTORY + b')\x81}' + text('statistics_methods') + b'}' + text(
        'mean') + HISTORY + b'ss' + text('max_length') + b'K\x07sb'
    zipped(tmp_path / 'a.pth', b'\x80\x02' + state + b'.')
    loaded = load(tmp_path / 'a.pth')
    assert loaded.max_length == 7 and before
    assert HistoryBuffer._statistics_methods == before


@pytest.mark.core
def test_a_torchscript_program_is_refused(tmp_path):
    """It may have a __setstate__, which torch runs."""
    file = tmp_path / 'program.pth'
    torch.jit.script(torch.nn.ReLU()).save(str(file))
    refused(file, 'a TorchScript program')


@pytest.mark.core
def test_over_http(tmp_path, monkeypatch):
    """The files of tmp_path are those of a host."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'home'))
    monkeypatch.setattr(
        torch.hub, 'download_url_to_file', lambda url, path, *_, **__:
        shutil.copy(tmp_path / Path(url).name, path))
    victim = tmp_path / 'it_ran'
    zipped(tmp_path / 'bad.pth', RUNNING['a_call'](str(victim)) + b'.')
    torch.save(dict(a=HistoryBuffer([3.], [1])), tmp_path / 'good.pth')
    with pytest.raises(UnsafeCheckpointError, match='http://host/bad.pth'):
        load('http://host/bad.pth')
    loaded = load('http://host/good.pth')
    assert loaded['a'].mean() == 3
    assert not victim.exists()


def test_a_storage_beyond_its_record_is_not_read(tmp_path):
    zipped(tmp_path / 'a.pth', b'M\xff\xfft', torch.zeros(10), b'K\nt')
    with pytest.raises(ValueError, match=r'a\.pth.*expected 262140'):
        load(tmp_path / 'a.pth')


@pytest.mark.core
@pytest.mark.parametrize('kind', [torch.Tensor, torch.nn.Parameter])
@pytest.mark.parametrize('name', [
    '__array_interface__', '__array_struct__', '__dlpack__', 'real', 'tag'])
def test_a_tensor_has_no_attributes_of_a_file(tmp_path, kind, name):
    """torch sets them, and numpy reads the address in some."""
    tensor = kind(torch.ones(1))
    tensor.tag = 1
    zipped(tmp_path / 'a.pth', text(name), tensor, text('tag'))
    loaded = load(tmp_path / 'a.pth')
    assert type(loaded) is kind and not vars(loaded)
