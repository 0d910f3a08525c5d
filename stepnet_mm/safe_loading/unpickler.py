"""A pickle module for torch with allow-lists.

Python's unpickler in Python, with three rules: a name is looked up in a
table, never imported; calls, new objects and states are allowed for listed
objects; an opcode that is not listed is refused. What a state gives to an
object is listed too, since libraries look names up in objects: numpy reads
the address in ``__array_interface__``.

torch's weights-only unpickler is not used. That of torch 2.1 takes no
additions, and the later ones share theirs with the whole process: onedl's
mmengine adds the true ``getattr`` while it loads.
"""
import argparse
import functools
import math
import pickle
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

import numpy as np
import torch
from torch.nn import Parameter
from torch.serialization import StorageType

#: Opcodes that build plain values or look up a name, without those that only
#: protocols 0 and 1 use (torch writes protocol 2) and numbers beyond 255
#: bytes.
_PLAIN = [getattr(pickle, name)[0] for name in '''
    PROTO FRAME STOP MARK POP POP_MARK MEMOIZE GLOBAL STACK_GLOBAL
    BINPUT LONG_BINPUT BINGET LONG_BINGET NONE NEWTRUE NEWFALSE
    BININT BININT1 BININT2 LONG1 BINFLOAT BINSTRING SHORT_BINSTRING
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8
    EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET
    TUPLE TUPLE1 TUPLE2 TUPLE3
'''.split()]
#: Functions of torch._utils that make tensors alone (no offset of quantized
#: tensors is checked, no index of sparse ones; no network of the mm libraries
#: has any). torch 2.1 has no _rebuild_tensor_v3.
_REBUILD = [name for name in '''
    _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3
    _rebuild_meta_tensor_no_storage _rebuild_parameter
'''.split() if hasattr(torch._utils, name)]
#: Those of ordinary tensors: torch fails at use of the quantized ones.
_DTYPES = [dtype for dtype in vars(torch).values()
           if isinstance(dtype, torch.dtype)
           and (dtype.is_floating_point or dtype.is_complex
                or re.fullmatch(r'torch\.(bool|u?int\d+)', str(dtype)))]
#: Values that are made of the plain ones.
_VALUES = (complex, slice, range, date, datetime, time, timedelta, timezone,
           Decimal, Fraction, PurePosixPath, PureWindowsPath)
_PARTS = (int, float, str, bytes, bool, type(None), timedelta, timezone)
_DICTS = dict, OrderedDict, Counter, defaultdict
_HASHED = set, frozenset, Counter, OrderedDict
#: Of a defaultdict.
FACTORIES = None, int, float, str, list, dict, set
#: Numbers, text and times of numpy, and all letters of theirs.
_KINDS = 'biufcSUmM'
_CODES = [code for code in np.typecodes['All']
          if np.dtype(code).kind in f'{_KINDS}O']


class Refused(Exception):
    """A pickle asks for what is on no list; the text names it."""


def _refuse(unpickler):
    raise Refused('a pickle opcode that is on no list')


# Of the unpickler in Python the type stubs know the public part alone.
_PythonUnpickler: Any = pickle._Unpickler


def _filling(opcode: bytes, place: int, *types: type):
    """An opcode that fills containers of these types alone.

    One lies at its place on the stack, or (0) before the last mark.
    """
    fill = _PythonUnpickler.dispatch[opcode[0]]

    def checked(self):
        _of_type(self.stack[place] if place else self.metastack[-1][-1],
                 *types)
        fill(self)

    return checked


class Unpickler(_PythonUnpickler):
    """Unpickles weights and mmengine's training states.

    Raises:
        Refused: at what the lists do not have, before it is done.
    """
    dispatch = {**dict.fromkeys(range(256), _refuse),
                **{code: _PythonUnpickler.dispatch[code] for code in _PLAIN}}

    def load(self):
        """Unpickle a value."""
        try:
            return super().load()
        except Refused as error:
            raise Refused(f'{error}{self._place()}') from None

    def _place(self) -> str:
        """The keys of the dicts that are being filled."""
        keys: list[str] = []
        holder = None
        for level in (*self.metastack, self.stack):
            texts = [part for part in level if type(part) is str]
            if holder is None:  # one item is set without a mark
                keys += texts
            elif type(holder) in _DICTS:
                keys += texts[-1:]
            holder = level[-1] if level else ()
        return f' in {".".join(keys)!a:.100}' if keys else ''

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
        self.stack[-1] = function(*args)

    def load_newobj(self):
        """Make an object without a state."""
        args = self.stack.pop()
        cls = self.stack[-1]
        known = (_history_buffer(), argparse.Namespace, UUID)
        if not any(cls is one for one in known) or args != ():
            raise Refused(f'a new object of {torch.typename(cls)}')
        # A dict for the options of a command.
        self.stack[-1] = (
            {} if cls is argparse.Namespace else object.__new__(cls))

    def load_build(self):
        """Give a state to an object of a listed type."""
        state = self.stack.pop()
        made = self.stack[-1]
        if type(made) not in _states():
            raise Refused(f'a state for {torch.typename(made)}')
        _states()[type(made)](made, state)

    def load_binpersid(self):
        """Take torch's reference to a storage."""
        pid = _of_type(self.stack[-1], tuple)
        if not ([*map(type, pid[:1] + pid[2:5])] == [str, str, str, int]
                and pid[0] == 'storage'
                and (pid[1] is torch.UntypedStorage
                     or isinstance(pid[1], StorageType))
                and all(type(part) in (str, int)
                        for view in pid[5:] for part in view or ())):
            raise Refused('a persistent id that is no storage')
        if isinstance(pid[1], StorageType) and pid[1].dtype not in _DTYPES:
            raise Refused(f'a storage of {pid[1].dtype}')
        self.see_storage(pid[2])
        super().load_binpersid()

    def see_storage(self, key: str) -> None:
        """Take note of a storage."""

    dispatch.update({
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.BINPERSID[0]: load_binpersid,
        **{filling[0][0]: _filling(*filling) for filling in (
            (pickle.APPEND, -2, list, deque),
            (pickle.APPENDS, 0, list, deque),
            (pickle.SETITEM, -3, *_DICTS),
            (pickle.SETITEMS, 0, *_DICTS),
            (pickle.ADDITEMS, 0, set))}
    })


def load(file, **kwargs):
    """As :func:`pickle.load`; raises :class:`Refused`."""
    return Unpickler(file, **kwargs).load()


@functools.lru_cache(None)
def _names() -> dict:
    """The objects that a pickle may name."""
    classes = [argparse.Namespace, torch.Tensor, Parameter, UUID,
               torch.UntypedStorage, np.ndarray, *filter(None, FACTORIES),
               *_methods()]
    return {
        **{str(dtype): dtype for dtype in _DTYPES},
        **{f'{cls.__module__}.{cls.__qualname__}': cls for cls in classes},
        # What protocol 2 calls int and str.
        'builtins.long': int, 'builtins.unicode': str,
        **_calls()
    }


@functools.lru_cache(None)
def _calls() -> dict:
    """The functions that a pickle may call, by their names."""
    return {
        **_rebuilds(),
        # The fourth is a parameter's attributes, see _rebuild_from_type.
        'torch._utils._rebuild_parameter_with_state': lambda *args: _tensor(
            torch._utils._rebuild_parameter, *args[:3]),
        'torch._tensor._rebuild_from_type_v2': _rebuild_from_type,
        'torch.serialization._get_layout': torch.serialization._get_layout,
        'torch.Size': torch.Size,
        'torch.device': torch.device,
        **{f'{kind.__module__}.{kind.__name__}':
           functools.partial(_hashed, kind) for kind in _HASHED},
        'collections.defaultdict': _default_dict,
        'collections.deque': _deque,
        **{f'{kind.__module__}.{kind.__name__}':
           functools.partial(_value, kind) for kind in _VALUES},
        'builtins.xrange': functools.partial(_value, range),
        're._compile': functools.partial(_value, re.compile),
        # Python 3.13 calls their module pathlib._local.
        **{f'pathlib{part}.{name}': functools.partial(_value, kind)
           for part in ('', '._local')
           for name, kind in (('PosixPath', Path),
                              ('WindowsPath', PureWindowsPath))},
        'builtins.bytes': functools.partial(_bytes, bytes),
        'builtins.bytearray': functools.partial(_bytes, bytearray),
        'builtins.getattr': _known_method,
        # For dataset_meta, if a config sets metainfo.
        'mmengine.config.config.ConfigDict': functools.partial(_hashed, dict),
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
def _rebuilds() -> dict:
    """Those that make a tensor."""
    return {f'torch._utils.{name}': functools.partial(
        _tensor, getattr(torch._utils, name)) for name in _REBUILD}


@functools.lru_cache(None)
def _states() -> dict:
    """Type -> the function that sets an object's state."""
    return {
        OrderedDict: _set_metadata,
        dict: _set_options,
        np.ndarray: _set_array,
        UUID: _set_uuid,
        _history_buffer(): _set_history,
        **{type(np.dtype(code)): _set_type for code in _CODES}
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


def _tensor(rebuild, source, *args):
    """A tensor within its storage, without hooks of the file."""
    if any(_of_type(part, int) < 0
           for size in args if isinstance(size, tuple) for part in size):
        raise Refused('a tensor of a negative size')
    storage = getattr(source, '_untyped_storage', None)
    whole = None if storage is None else storage.nbytes()
    made = rebuild(source, *args)
    if storage is not None and storage.nbytes() != whole:  # torch enlarges it
        raise Refused('a tensor larger than its storage')
    made._backward_hooks = None
    return made


def _rebuild_from_type(function, cls, args, state):
    """A tensor that has attributes, or a parameter.

    The attributes are left out: no library needs any, and torch and numpy
    look some up.
    """
    if not any(function is known for known in _rebuilds().values()) or not (
            cls is torch.Tensor or cls is Parameter):
        raise Refused(f'{torch.typename(cls)} by {torch.typename(function)}')
    made = function(*args)
    return made if type(made) is cls else made.as_subclass(cls)


def _hashed(kind, *args):
    """A container of another's content."""
    return kind(*(_of_type(part, list, tuple, dict, set, *_HASHED)
                  for part in args))


def _value(kind, *args):
    """A value of plain parts."""
    made = kind(*(_of_type(part, *_PARTS) for part in args))
    if isinstance(made, (date, time)):
        made.replace()  # a state in bytes is not checked
    return made


def _of_type(value, *types: type):
    """A value of one of the types."""
    if type(value) not in types:
        raise Refused(f'{torch.typename(value)} where {types[0].__name__} is')
    return value


def _default_dict(factory=None) -> defaultdict:
    if factory is _calls()['builtins.set']:  # the table's, which checks
        factory = set
    if not any(factory is known for known in FACTORIES):
        raise Refused(f'a defaultdict of {torch.typename(factory)}')
    return defaultdict(factory)


def _deque(parts=(), most=None) -> deque:
    """An empty one, as pickle begins it."""
    return deque(_of_type(parts, tuple)[:0], _of_type(most, int, type(None)))


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes other bytes; other codecs would be imported."""
    if _of_type(encoding, str) not in ('latin1', 'latin-1'):
        raise Refused(f'_codecs.encode to {encoding!r:.60}')
    return _of_type(text, str).encode('latin1')


def _bytes(kind, content=b'', *encoding):
    return kind(_encode(content, *encoding) if encoding
                else _of_type(content, bytes))


def _empty_array(*_) -> np.ndarray:
    """An array whose state is set later."""
    return np.ndarray((0, ), 'b')


def _plain_type(code: str, *_) -> np.dtype:
    """A copy, because all arrays share numpy's."""
    # numpy 1 wraps longer numbers to negative ones.
    if re.fullmatch(r'[A-Za-z]\d{1,6}', _of_type(code, str)):
        dtype = np.dtype(code, copy=True)
        if is_plain(dtype) or dtype.hasobject:
            return dtype
    raise Refused(f'numpy.dtype {code!r:.60}')


def is_plain(dtype: np.dtype) -> bool:
    """Whether it is of numbers, text or times."""
    return dtype.kind in _KINDS


def _scalar(dtype: np.dtype, content: bytes):
    """A number, text or time of numpy; it would fill up what is missing."""
    if not isinstance(dtype, np.dtype) or dtype.hasobject or (
            len(_of_type(content, bytes)) != dtype.itemsize):
        raise Refused('a number of numpy without its bytes')
    return np.frombuffer(content, dtype)[0] if content else dtype.type()


def _set_array(array: np.ndarray, state: tuple) -> None:
    """Set the content; numpy would read beyond the end of a short list."""
    _, shape, dtype, _, content = _of_type(state, tuple)
    if not isinstance(dtype, np.dtype) or not dtype.itemsize:
        raise Refused('an array of elements without bytes')
    of_objects = dtype.hasobject
    _of_type(content, list if of_objects else bytes)
    size = math.prod(_of_type(number, int) for number in shape)
    if len(content) != size * (1 if of_objects else dtype.itemsize):
        raise Refused('an array of another size than its content')
    array.__setstate__(state)


def _set_type(made: np.dtype, state: tuple) -> None:
    """Set the byte order, and the unit of a time; all else is as it was."""
    dtype = made
    if made.kind in 'mM':
        unit, number, *_ = _of_type(state, tuple)[8][1]
        if not _of_type(unit, bytes).isalpha() or _of_type(number, int) < 1:
            raise Refused('a numpy.dtype of a time without unit')
        dtype = np.dtype(f'{made.char}8[{number}{unit.decode()}]')
    allowed = dtype.newbyteorder(
        _of_type(_of_type(state, tuple)[1], str)).__reduce__()[2]
    if state[2:8] != allowed[2:8]:
        raise Refused('numpy.dtype with another state')
    made.__setstate__(allowed)  # type: ignore[attr-defined]  # no stub


def _set_metadata(state_dict: OrderedDict, state: dict) -> None:
    """Set the versions of a state_dict; other attributes hide methods."""
    if '_metadata' in _of_type(state, dict):
        vars(state_dict)['_metadata'] = _of_type(
            state['_metadata'], OrderedDict, dict)


def _set_options(options: dict, state: dict) -> None:
    """Set the attributes of an ``argparse.Namespace``."""
    options.update(_of_type(state, dict))


def _set_uuid(made: UUID, state: dict) -> None:
    state = dict(int=_of_type(state['int'], int))
    made.__setstate__(state)  # type: ignore[attr-defined]  # no stub


def _set_history(buffer, state: dict) -> None:
    """Set all but the methods, which would replace those of the class."""
    buffer.__setstate__({
        name: _of_type(state[name], kind)
        for name, kind in dict(max_length=int, _log_history=np.ndarray,
                               _count_history=np.ndarray).items()
        if name in state})
