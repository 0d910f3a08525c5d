"""A pickle module for torch with allow-lists.

Python's unpickler in Python, with three rules: a name is looked up in a
table, never imported; calls, new objects and states are allowed for listed
objects; an opcode that is not listed is refused.

torch's weights-only unpickler is not used. That of torch 2.1 takes no
additions, and the later ones share theirs with the whole process: onedl's
mmengine adds the true ``getattr`` while it loads.
"""
import argparse
import datetime
import functools
import itertools
import os
import pickle
import pickletools
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch.serialization import StorageType

#: Opcodes that build plain values or look up a name, without those that only
#: protocols 0 and 1 use (torch writes protocol 2) and numbers beyond 255
#: bytes, which take quadratic time to print.
_PLAIN = [getattr(pickle, name)[0] for name in '''
    PROTO FRAME STOP MARK POP POP_MARK MEMOIZE GLOBAL STACK_GLOBAL
    BINPUT LONG_BINPUT BINGET LONG_BINGET NONE NEWTRUE NEWFALSE
    BININT BININT1 BININT2 LONG1 BINFLOAT BINSTRING SHORT_BINSTRING
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET
'''.split()]
#: Functions of torch._utils that make tensors alone and check their arguments
#: (no offset of quantized tensors is checked, no index of sparse ones; no
#: network of the mm libraries has any). torch 2.1 has no _rebuild_tensor_v3.
_REBUILD = [getattr(torch._utils, name) for name in '''
    _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3
    _rebuild_meta_tensor_no_storage _rebuild_parameter
'''.split() if hasattr(torch._utils, name)]
_DICTS = dict, OrderedDict, Counter, defaultdict
#: Python frees these in one another by recursion, without a limit.
_RECURSIVE = deque, defaultdict
#: Of a defaultdict.
FACTORIES = None, int, float, str, list, dict, set
#: Numbers and text of numpy, and all letters of theirs.
_KINDS = 'biufcSU'
_CODES = [code for code in np.typecodes['All']
          if np.dtype(code).kind in _KINDS]
#: Nesting. Python hashes tuples by recursion: 10^5 levels end the process.
_DEEPEST = 100
#: Parts of a value above four for each byte: seconds.
_SHARED = 10**7
#: Keys that are tuples, whose hashes can be chosen.
_TUPLES = 10**4
#: Characters; Linux has no longer paths.
_PATH = 4096
#: Bytes; up to here an announced length needs no check.
_MUCH = 2**20


class Refused(Exception):
    """A pickle asks for what is on no list; the text names it."""


def _refuse(unpickler):
    raise Refused('a pickle opcode that is on no list')


# Of the unpickler in Python the type stubs know the public part alone.
_PythonUnpickler: Any = pickle._Unpickler


class Unpickler(_PythonUnpickler):
    """Unpickles weights and mmengine's training states.

    Raises:
        Refused: at what the lists do not have, before it is done.
    """
    dispatch = {**dict.fromkeys(range(256), _refuse),
                **{code: _PythonUnpickler.dispatch[code] for code in _PLAIN}}

    def __init__(self, file, **kwargs) -> None:
        super().__init__(file, **kwargs)
        self._file_read = functools.partial(_read, file)
        self._place = file.tell
        self._tuples = self._made = 0
        self._recursive: list = []

    def load(self):
        """Unpickle a value that is quick to copy, compare and print."""
        begin = self._place()
        try:
            made = super().load()
            _check_size([made, *self._recursive], self._place() - begin)
        except BaseException:
            for part in self._recursive:
                part.clear()
            raise
        return made

    def find_class(self, module: str, name: str):
        """Look a name up in the table."""
        module = 'builtins' if module == '__builtin__' else module
        try:
            return _names()[f'{module}.{name}']
        except KeyError:
            raise Refused(ascii(f'{module}.{name}')[1:-1]) from None

    def load_reduce(self):
        """Call a listed function."""
        args = _of_type(self.stack.pop(), tuple)
        function = self.stack[-1]
        if not any(function is known for known in _calls().values()):
            raise Refused(f'a call of {torch.typename(function)}')
        if function in (set, frozenset, Counter, OrderedDict, torch.Size):
            for part in args:  # a tensor or array may have no end
                _of_type(part, list, tuple, dict, set, OrderedDict, Counter)
            # Of a pair in a list the first is the key.
            self._check_keys(part[0] if type(part) is list and part else part
                             for part in itertools.chain(*args))
        self.stack[-1] = made = function(*args)
        self._count(made)
        if isinstance(made, _RECURSIVE):
            self._recursive.append(made)

    def load_newobj(self):
        """Make a HistoryBuffer, or a dict for the options of a command."""
        args = self.stack.pop()
        cls = self.stack[-1]
        known = cls is _history_buffer() or cls is argparse.Namespace
        if not known or args != ():
            raise Refused(f'a new object of {torch.typename(cls)}')
        self.stack[-1] = (
            {} if cls is argparse.Namespace else object.__new__(cls))

    def load_build(self):
        """Give a state to an object of a listed type."""
        state = self.stack.pop()
        made = self.stack[-1]
        if type(made) not in _states():
            raise Refused(f'a state for {torch.typename(made)}')
        _states()[type(made)](made, state)
        self._count(made)

    def _count(self, made) -> None:
        """Refuse text and arrays made of the same bytes again and again."""
        if isinstance(made, (str, bytes)):
            self._made += len(made)
        elif isinstance(made, np.ndarray):
            self._made += made.nbytes
        if self._made > _SHARED + 4 * self._place():
            raise Refused('bytes that are shared too often')

    def load_binpersid(self):
        """Take torch's reference to a storage."""
        pid = self.stack[-1]
        if not (type(pid) is tuple and len(pid) > 4
                and type(pid[0]) is str and pid[0] == 'storage'
                and (isinstance(pid[1], StorageType)
                     or pid[1] is torch.UntypedStorage)
                and [*map(type, pid[2:5])] == [str, str, int]
                and all(type(part) in (str, int)
                        for view in pid[5:] for part in view or ())):
            raise Refused('a persistent id that is no storage')
        self.check_storage(pid)
        super().load_binpersid()

    def check_storage(self, pid: tuple) -> None:
        """Raise an error if the file cannot have that storage."""

    def load_append(self):
        """Append to a list or deque."""
        _of_type(self.stack[-2], list, deque)
        super().load_append()

    def load_appends(self):
        """Append to a list or deque."""
        _of_type(self.metastack[-1][-1], list, deque)
        super().load_appends()

    def load_setitem(self):
        """Set an item of a dict."""
        _of_type(self.stack[-3], *_DICTS)
        self._check_keys(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self):
        """Set items of a dict."""
        _of_type(self.metastack[-1][-1], *_DICTS)
        self._check_keys(self.stack[::2])
        super().load_setitems()

    def load_additems(self):
        """Add to a set."""
        _of_type(self.metastack[-1][-1], set)
        self._check_keys(self.stack)
        super().load_additems()

    def _check_keys(self, keys):
        """Refuse keys that may be slow to hash, or many with one hash."""
        for key in keys:
            if type(key) is str:  # quickly, for nearly all are
                continue
            self._tuples += type(key) is tuple
            parts = key if type(key) is tuple else (key, )
            if self._tuples > _TUPLES or not all(map(_has_own_hash, parts)):
                raise Refused(f'a key of {torch.typename(key)} that may be '
                              'slow to hash')

    dispatch.update({
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.BINPERSID[0]: load_binpersid,
        pickle.APPEND[0]: load_append,
        pickle.APPENDS[0]: load_appends,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.ADDITEMS[0]: load_additems,
    })


def _has_own_hash(key) -> bool:
    """Whether few keys of that kind can be made to have one hash.

    That of text is random, that of a number not too large the number.
    """
    if isinstance(key, (int, float, np.integer, np.floating, np.bool_)):
        return abs(key) < sys.hash_info.modulus
    return key is None or isinstance(
        key, (str, bytes, torch.dtype, torch.Tensor))


def _check_size(value, size: int) -> None:
    """Refuse deep values, and those that share parts again and again.

    Args:
        value: what was unpickled.
        size (int): bytes of its pickle, in which each part has one.
    """
    whole, count = [value], 0
    for _ in range(_DEEPEST):
        whole = [part for part in whole
                 if isinstance(part, (dict, tuple, list, deque, set,
                                      frozenset))]
        if not whole:
            return
        count += sum(map(len, whole))
        if count > _SHARED + 4 * size:
            raise Refused('values that share parts too often')
        whole = [part for parts in whole for part in (
            itertools.chain(parts, parts.values())
            if isinstance(parts, dict) else parts)]
    raise Refused(f'values more than {_DEEPEST} deep')


def _read(file, size: int) -> bytes:
    """``file.read(size)``, after a check that so much is left."""
    if size > _MUCH:
        place = file.tell()
        left = file.seek(0, os.SEEK_END) - place
        file.seek(place)
        if size > left:
            raise EOFError(f'{size} bytes are announced, {left} are left')
    return file.read(size)


def is_pickle(file) -> bool:
    """Whether a whole pickle follows, as hardly ever in random bytes."""
    reader: Any = SimpleNamespace(read=functools.partial(_read, file),
                                  readline=file.readline)
    with suppress(ValueError, EOFError):
        for _ in pickletools.genops(reader):  # nothing of it is done
            pass
        return True
    return False


def load(file, **kwargs):
    """As :func:`pickle.load`; raises :class:`Refused`."""
    return Unpickler(file, **kwargs).load()


@functools.lru_cache(None)
def _names() -> dict:
    """The objects that a pickle may name."""
    classes = [argparse.Namespace, torch.Tensor, torch.nn.Parameter,
               torch.UntypedStorage, np.ndarray, *filter(None, FACTORIES),
               *_methods()]
    return {
        **{str(value): value for value in vars(torch).values()
           if isinstance(value, torch.dtype)},
        **{f'{cls.__module__}.{cls.__qualname__}': cls for cls in classes},
        # What protocol 2 calls int and str.
        'builtins.long': int, 'builtins.unicode': str,
        **_calls()
    }


@functools.lru_cache(None)
def _calls() -> dict:
    """The functions that a pickle may call, by their names."""
    return {
        **{f'torch._utils.{f.__name__}': f for f in _REBUILD},
        'torch._utils._rebuild_parameter_with_state':
        _rebuild_parameter_with_state,
        'torch._tensor._rebuild_from_type_v2': _rebuild_from_type,
        'torch.serialization._get_layout': _layout,
        'torch.Size': torch.Size,
        'torch.device': torch.device,
        'collections.OrderedDict': OrderedDict,
        'collections.Counter': Counter,
        'collections.defaultdict': _default_dict,
        'collections.deque': _deque,
        'builtins.set': set,
        'builtins.frozenset': frozenset,
        # Python 3.13 calls their module pathlib._local.
        **{f'pathlib{part}.{name}': _path
           for part in ('', '._local')
           for name in ('PosixPath', 'WindowsPath')},
        **{f'datetime.{kind}': functools.partial(_moment, kind)
           for kind in ('date', 'datetime', 'time', 'timedelta')},
        'builtins.complex': complex,
        'builtins.slice': _slice,
        'builtins.bytes': _no_bytes,
        'builtins.getattr': _known_method,
        'mmengine.config.config.ConfigDict': _plain_dict,
        '_codecs.encode': _encode,
        'numpy.dtype': _plain_type,
        # numpy 1 calls its module numpy.core, numpy 2 numpy._core.
        **{f'numpy.{core}.multiarray.{name}': function
           for core in ('core', '_core')
           for name, function in dict(
               _reconstruct=_empty_array,
               scalar=_scalar).items()}
    }


@functools.lru_cache(None)
def _states() -> dict:
    """Type -> the function that sets an object's state."""
    return {
        OrderedDict: _set_metadata,
        dict: _set_options,
        np.ndarray: np.ndarray.__setstate__,
        _history_buffer(): _set_history,
        **{type(np.dtype(code)): _set_byte_order for code in _CODES}
    }


def _history_buffer() -> type:
    # This module is imported amid mmengine's own imports.
    from mmengine.logging import HistoryBuffer
    return HistoryBuffer


@functools.lru_cache(None)
def _methods() -> dict:
    """The classes in mmengine's training states, and the methods they name."""
    from mmengine.optim import OneCycleParamScheduler
    return {
        _history_buffer(): ('min', 'max', 'mean', 'current'),
        OneCycleParamScheduler: ('_annealing_cos', '_annealing_linear')
    }


def _known_method(owner, name: str):
    """getattr for the references to methods that mmengine pickles.

    The true one would open every door: it reaches ``__globals__`` of a
    method, and from there eval.
    """
    if not any(owner is cls and name in names
               for cls, names in _methods().items()):
        raise Refused(f'builtins.getattr of {_of_type(name, str)!r:.60}')
    return getattr(owner, name)


def _rebuild_from_type(function, cls, args, state):
    """A tensor that has attributes, or a parameter."""
    if function not in _REBUILD or cls not in (
            torch.Tensor, torch.nn.Parameter):
        raise Refused(f'{torch.typename(cls)} by {torch.typename(function)}')
    made = function(*args)
    return _with_attributes(
        made if type(made) is cls else made.as_subclass(cls), state)


def _rebuild_parameter_with_state(data, requires_grad, hooks, state):
    """A parameter that has attributes."""
    made = torch._utils._rebuild_parameter(data, requires_grad, hooks)
    return _with_attributes(made, state)


def _with_attributes(tensor, state):
    """Set attributes in a tensor's __dict__.

    torch would set any attribute: ``real`` writes to the tensor.
    """
    own, slots = state if isinstance(state, tuple) else (state, None)
    for name in _of_type(own or {}, dict):
        if hasattr(type(tensor), _of_type(name, str)):
            raise Refused(f'a tensor with the attributes {name!r:.60}')
    _of_type(slots, type(None))
    vars(tensor).update(own or {})
    return tensor


def _empty_array(cls, shape: tuple, code) -> np.ndarray:
    """An array whose state is set later."""
    if cls is not np.ndarray or shape != (0, ) or code not in (b'b', 'b'):
        raise Refused('an array that is not empty')
    return np.ndarray(shape, code)


def _of_type(value, *types: type):
    """A value of one of the types, so that it is quick to hash and print."""
    if type(value) not in types:
        raise Refused(f'{torch.typename(value)} where {types[0].__name__} is')
    return value


def _default_dict(factory=None) -> defaultdict:
    if not any(factory is known for known in FACTORIES):
        raise Refused(f'a defaultdict of {torch.typename(factory)}')
    return defaultdict(factory)


def _deque(parts=(), most=None) -> deque:
    """An empty one, as pickle begins it."""
    return deque(_of_type(parts, tuple)[:0], _of_type(most, int, type(None)))


def _layout(name: str) -> torch.layout:
    return torch.serialization._get_layout(_of_type(name, str))


def _slice(*places) -> slice:
    """Python frees those in one another by recursion."""
    return slice(*(_of_type(place, int, type(None)) for place in places))


def _path(*parts) -> str:
    """A path as text, as a checkpoint of ours has it.

    Short, for it may be in itself again and again.
    """
    if sum(len(_of_type(part, str)) for part in parts) > _PATH:
        raise Refused(f'a path of more than {_PATH} characters')
    return str(PurePosixPath(*parts))


def _moment(kind: str, *parts) -> str:
    """A date or time as text."""
    return str(getattr(datetime, kind)(
        *(_of_type(part, bytes, int) for part in parts)))


def _plain_dict(content: dict) -> dict:
    """For ``dataset_meta``, if a config sets metainfo."""
    return _of_type(content, dict)


def _no_bytes() -> bytes:
    """How protocol 2 writes b''."""
    return b''


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes other bytes; other codecs would be imported."""
    if _of_type(encoding, str) != 'latin1':
        raise Refused(f'_codecs.encode to {encoding!r:.60}')
    return _of_type(text, str).encode('latin1')


def _plain_type(code: str, *_) -> np.dtype:
    """A copy, because all arrays share numpy's."""
    # numpy 1 wraps longer numbers to negative ones.
    if re.fullmatch(r'[A-Za-z]\d{1,6}', _of_type(code, str)):
        dtype = np.dtype(code, copy=True)
        if is_plain(dtype):
            return dtype
    raise Refused(f'numpy.dtype {code!r:.60}')


def is_plain(dtype: np.dtype) -> bool:
    """Whether it is of numbers or text.

    Elements without bytes could be many in a small file.
    """
    return dtype.kind in _KINDS and dtype.itemsize > 0


def _scalar(dtype: np.dtype, content: bytes):
    """A number or text of numpy; it would fill up what is missing."""
    if not isinstance(dtype, np.dtype) or (
            len(_of_type(content, bytes)) != dtype.itemsize):
        raise Refused('a number of numpy without its bytes')
    return np.frombuffer(content, dtype)[0]


def _set_metadata(state_dict: OrderedDict, state: dict) -> None:
    """Set the versions of a state_dict; other attributes hide methods."""
    if '_metadata' in _of_type(state, dict):
        vars(state_dict)['_metadata'] = state['_metadata']


def _set_options(options: dict, state: dict) -> None:
    """Set the attributes of an ``argparse.Namespace``."""
    for name in _of_type(state, dict):
        _of_type(name, str)
    options.update(state)


def _set_byte_order(made: np.dtype, state: tuple) -> None:
    """The only allowed state of such a type."""
    orders = (made, made.newbyteorder())
    if state not in [order.__reduce__()[2] for order in orders]:
        raise Refused('numpy.dtype with another state')
    made.__setstate__(state)  # type: ignore[attr-defined]  # no stub


def _set_history(buffer, state: dict) -> None:
    """Set all but the methods, which would replace those of the class."""
    buffer.__setstate__({name: state[name] for name in (
        'max_length', '_log_history', '_count_history') if name in state})
