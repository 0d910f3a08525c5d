"""One loader for every checkpoint: checked, and no code of it executed.

mmengine 0.10.7 unpickles a checkpoint in full where torch lets it, and
onedl's 0.10.12 falls back to that: a malicious file runs its code. This
loader replaces theirs for local paths and every remote prefix. It uses
torch's readers with the pickle module :mod:`unpickler`, and never
``torch.jit.load``, to which torch.load hands TorchScript archives.
"""
import contextlib
import errno
import functools
import io
import os.path as osp
import pickle
import re
import threading
import zipfile
import zlib

import numpy as np
import torch
from torch import serialization

from . import unpickler
from .config_text import value_at, without_code

#: The attribute of a folder in a zip's directory.
_FOLDER = 0x10
#: What a file of torch before 1.6 begins with.
_MAGIC = tuple(pickle.dumps(serialization.MAGIC_NUMBER, protocol)
               for protocol in range(2, 6))
#: Names of the best checkpoints, and of the one saved at a preemption.
_BEST = re.compile(r'best_.+')
_TEMPORARY = re.compile(r'preempted_iter_\d+\.pth')
_remote_load = threading.RLock()


class UnsafeCheckpointError(RuntimeError):
    """A checkpoint holds more than weights or a training state."""


class _UnreadableError(Exception):
    """A checkpoint cannot be read; the text lacks the file's name."""


def register_safe_loaders() -> None:
    """Replace all of mmengine's checkpoint loaders."""
    # At the top it would import what imports this module (registration.py).
    from mmengine.runner.checkpoint import CheckpointLoader
    for prefix, loader in list(CheckpointLoader._schemes.items()):
        safe = load_from_local if prefix == '' else _safe_remote(loader)
        CheckpointLoader.register_scheme(prefix, safe, force=True)


def load_from_local(filename: str, map_location=None) -> dict:
    """Load a local checkpoint of weights, or of a training by mmengine.

    Raises:
        FileNotFoundError: if there is no such file.
        UnsafeCheckpointError: if it holds anything else, which is neither
            imported nor called.
        ValueError: if it is no file, or damaged.
        OSError: if this process cannot read it now.
    """
    path = osp.expanduser(filename)
    if not osp.isfile(path):
        raise FileNotFoundError(
            f'{filename}: expected a checkpoint, got no such file; check '
            'load_from, init_cfg.checkpoint or --resume')
    with _errors_name(filename):
        return _as_data(_load(path, map_location), path)


def refusal(value) -> str:
    """The reason why a part of a checkpoint would not load again, or ''."""
    with io.BytesIO() as file:
        try:
            torch.save(value, file)
            file.seek(0)
            _load(file, 'cpu')
        except (unpickler.Refused, _UnreadableError, pickle.PicklingError,
                TypeError) as error:
            return str(error)
    return ''


def _safe_remote(loader):
    """A remote loader under which every torch.load is :func:`_load`."""
    @functools.wraps(loader)  # mmengine logs the name
    def load(filename, map_location=None):
        with _errors_name(filename), _instead_of_torch_load():
            return _as_data(
                loader(filename, map_location=map_location), filename)

    return load


def _as_data(checkpoint, filename: str):
    """Drop config texts with code, and names of files of other folders."""
    if isinstance(checkpoint, dict) and not isinstance(
            checkpoint.get('message_hub', {}), dict):
        del checkpoint['message_hub']  # mmengine takes its attributes over
    without_code(checkpoint, filename)
    keep_own_files(checkpoint, osp.dirname(filename))
    return checkpoint


def keep_own_files(checkpoint, folder: str) -> None:
    """Keep the names of a folder's files alone in ``message_hub``.

    The folder is a path or a URL.
    """
    info = value_at(checkpoint, ('message_hub', 'runtime_info'))
    if not isinstance(info, dict):
        return
    for key, value in list(info.items()):
        if key == 'keep_ckpt_ids':
            info[key] = [number for number in value if type(number) is int
                         ] if isinstance(value, (list, tuple)) else []
        elif key == 'temporary_ckpt':  # without its folder
            own = _own(value, folder, _TEMPORARY)
            info[key] = own and osp.basename(own)
        elif str(key).startswith('best_ckpt'):
            info[key] = _own(value, folder, _BEST)


def _own(path, folder: str, names: re.Pattern) -> str | None:
    """The path of a folder's file of that name; None if there is none."""
    name = osp.basename(path) if isinstance(path, str) else ''
    own = osp.join(folder, name)
    there = '://' in folder or osp.isfile(own)
    return own if names.fullmatch(name) and there else None


@contextlib.contextmanager
def _errors_name(filename: str):
    try:
        yield
    except unpickler.Refused as error:
        raise UnsafeCheckpointError(
            f'{filename}: expected a checkpoint of weights or of a training '
            f'state, got one asking for {error}; it was not run, re-save the '
            'checkpoint without that if you trust its source'
        ) from None
    except _UnreadableError as error:
        raise ValueError(f'{filename}: {error}') from None
    except OSError as error:  # of which many name no file
        if filename in str(error):
            raise
        said = (f'{filename}: expected to read a checkpoint, got {error}; see '
                'that it can be reached, name a local file, or train from '
                'scratch with init_cfg=None, frozen_stages=-1 and '
                'norm_eval=False in model.backbone')
        raise OSError(*filter(None, (error.errno, said))) from error


def _load(f, map_location=None, *_, **__):
    """As torch.load, whose other arguments (weights_only) are ignored."""
    with (contextlib.nullcontext(f) if hasattr(f, 'read')
          else open(f, 'rb')) as file:
        try:
            return _read(file, map_location)
        except (unpickler.Refused, MemoryError):
            raise
        except Exception as error:  # a broken file may break any reader
            reason = str(error).partition('\n')[0]
            if 'allocate memory' in reason:  # torch's own error
                raise MemoryError(reason) from error
            # A broken length leads before the start of a file: EINVAL.
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            said = f'{type(error).__name__} {reason}'.rstrip()
            raise _UnreadableError(
                'expected a whole torch checkpoint, got another file or one '
                f'cut off ({said}); take another copy, or load it with '
                "map_location='cpu' if that names a device") from error


def _read(file, map_location):
    start = file.tell()
    head = file.read(50)
    file.seek(start)
    if head.startswith(b'PK\x03\x04'):
        archive = _Archive(file)
        if 'constants.pkl' in archive.get_all_records():
            raise unpickler.Refused('a TorchScript program')
        return serialization._load(
            archive, map_location, unpickler, encoding='utf-8')
    if not head.startswith(_MAGIC):
        raise ValueError('it does not begin as one')
    # torch would unpack a tar archive if it were on the disk.
    return serialization._legacy_load(
        io.BytesIO(file.read()), map_location, unpickler, encoding='utf-8')


class _Archive(torch._C.PyTorchFileReader):
    """torch's reader of a zip file, with checks.

    torch writes a checksum of every record and never compares it; the tensor
    of a record that is marked as a folder it leaves uninitialized.
    """

    def __init__(self, file):
        start = file.tell()
        with zipfile.ZipFile(file) as archive:
            # torch leaves out the folder that all records lie in.
            self._entries = {entry.filename.partition('/')[2]: entry
                             for entry in archive.infolist()}
        file.seek(start)
        super().__init__(file)

    def get_record(self, name: str) -> bytes:
        """As torch's; ValueError for a folder or a wrong checksum."""
        record, entry = super().get_record(name), self._entries[name]
        if entry.is_dir() or entry.external_attr & _FOLDER:
            raise ValueError(f'its record {name} is marked as a folder')
        # torch.serialization.set_crc32_options(False) writes 0.
        if entry.CRC not in (0, zlib.crc32(record)):
            raise ValueError(f'the checksum of its record {name} is wrong')
        return record

    def get_storage_from_record(self, name: str, size: int, dtype):
        """As torch's, but never beyond the end of the record."""
        record = self.get_record(name)
        if size > len(record):
            raise ValueError(
                f'{name}: expected {size} bytes, got {len(record)}')
        storage = torch.empty(size, dtype=torch.uint8, device='cpu')
        storage.numpy()[:] = np.frombuffer(record, np.uint8, size)
        return storage


@contextlib.contextmanager
def _instead_of_torch_load():
    """Make torch.load :func:`_load`, for one thread after the other."""
    with _remote_load:
        theirs = torch.load
        torch.load = serialization.load = _load
        try:
            yield
        finally:
            torch.load = serialization.load = theirs
