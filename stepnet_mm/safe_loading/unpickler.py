"""Which types a checkpoint may hold: a pickle module with allow-lists.

Python's unpickler in Python, with three rules: a name is looked up in a
table, never imported; calls, new objects and states are allowed for listed
objects; an opcode that is not listed is refused.

torch's weights-only unpickler is not used. That of torch 2.1 takes no
additions, and the later ones share theirs with the whole process: onedl's
mmengine adds the true ``getattr`` while it loads.
"""
import argparse
import codecs
import functools
import pickle
import re
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import torch
from torch.nn import Parameter

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
_REBUILD = [getattr(torch._utils, name) for name in '''
    _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3
    _rebuild_meta_tensor_no_storage _rebuild_parameter
'''.split() if hasattr(torch._utils, name)]
#: Values that are made of plain ones.
_VALUES = (set, frozenset, Counter, OrderedDict, defaultdict, deque, bytes,
           bytearray, complex, slice, range, date, datetime, time, timedelta,
           timezone, Decimal, Fraction, PurePosixPath, PureWindowsPath,
           torch.Size, torch.device)
_DICTS = dict, OrderedDict, Counter, defaultdict
#: Of a defaultdict.
FACTORIES = None, int, float, str, list, dict, set


class Refused(Exception):
    """A pickle asks for what is on no list; the text names it."""


def _refuse(unpickler):
    raise Refused('a pickle opcode that is on no list')


# Of the unpickler in Python the type stubs know the public part alone.
_PythonUnpickler: Any = pickle._Unpickler


def _filling(opcode: bytes, place: int, *types: type):
    """An opcode that fills containers of these types alone.

    ``place``: the container's on the stack; 0: just before the last mark.
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
        if cls not in (_history_buffer(), argparse.Namespace) or args != ():
            raise Refused(f'a new object of {torch.typename(cls)}')
        self.stack[-1] = object.__new__(cls)

    def load_build(self):
        """Give a state to an object of a listed type."""
        state = self.stack.pop()
        made: Any = self.stack[-1]
        if type(made) is np.ndarray:  # numpy reads beyond the end of a list
            made.__setstate__((*state[:-1], _of_type(state[-1], bytes)))
        elif isinstance(made, np.dtype):
            _set_byte_order(made, state[1])
        elif type(made) is _history_buffer():  # or they become the class's
            made.__setstate__({**state, 'statistics_methods': {}})
        elif type(made) is argparse.Namespace:
            vars(made).update(state)
        elif type(made) is OrderedDict:  # others would hide its methods
            vars(made).update(_metadata=state.get('_metadata'))
        else:
            raise Refused(f'a state for {torch.typename(made)}')

    def load_binpersid(self):
        """Take torch's reference to a storage."""
        pid = _of_type(self.stack[-1], tuple)
        if pid[:1] != ('storage', ):
            raise Refused('a persistent id that is no storage')
        super().load_binpersid()

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
    classes = [argparse.Namespace, torch.Tensor, Parameter,
               torch.UntypedStorage, np.ndarray, *filter(None, FACTORIES),
               *_methods()]
    return {
        **{str(dtype): dtype for dtype in vars(torch).values()
           if isinstance(dtype, torch.dtype)},
        **{f'{cls.__module__}.{cls.__qualname__}': cls for cls in classes},
        # What protocol 2 calls int and str.
        'builtins.long': int, 'builtins.unicode': str,
        **_calls()
    }


@functools.lru_cache(None)
def _calls() -> dict:
    """The functions that a pickle may call, by their names."""
    return {
        **{f'torch._utils.{made.__name__}': made for made in _REBUILD},
        # The fourth is a parameter's attributes, see _rebuild_from_type.
        'torch._utils._rebuild_parameter_with_state':
        lambda *args: torch._utils._rebuild_parameter(*args[:3]),
        'torch._tensor._rebuild_from_type_v2': _rebuild_from_type,
        'torch.serialization._get_layout': torch.serialization._get_layout,
        **{f'{kind.__module__}.{kind.__name__}': kind for kind in _VALUES},
        'builtins.xrange': range,
        're._compile': re.compile,
        # Python 3.13 calls their module pathlib._local.
        **{f'pathlib{part}.{name}': kind for part in ('', '._local')
           for name, kind in dict(
               PosixPath=Path, WindowsPath=PureWindowsPath).items()},
        'builtins.getattr': _known_method,
        # For dataset_meta, if a config sets metainfo.
        'mmengine.config.config.ConfigDict': dict,
        '_codecs.encode': codecs.encode,
        'numpy.dtype': _plain_type,
        # numpy 1 calls its module numpy.core, numpy 2 numpy._core.
        **{f'numpy.{core}.multiarray.{name}': function
           for core in ('core', '_core')
           for name, function in dict(
               _reconstruct=lambda *_: np.ndarray((0, ), 'b'),
               scalar=np.float64().__reduce__()[0]).items()}
    }


def _history_buffer() -> Any:
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
    """A tensor that has attributes, or a parameter.

    The attributes are left out: no library needs any, and torch and numpy
    look some up (numpy reads the address in ``__array_interface__``).
    """
    if function not in _REBUILD or cls not in (torch.Tensor, Parameter):
        raise Refused(f'{torch.typename(cls)} by {torch.typename(function)}')
    made = function(*args)
    return made if type(made) is cls else made.as_subclass(cls)


def _of_type(value, *types: type):
    """A value of one of the types."""
    if type(value) not in types:
        raise Refused(f'{torch.typename(value)} where {types[0].__name__} is')
    return value


def _plain_type(code: str, *_) -> np.dtype:
    """A copy, because all arrays share numpy's."""
    # numpy 1 wraps longer numbers to negative ones.
    if re.fullmatch(r'[A-Za-z]\d{1,6}', _of_type(code, str)):
        dtype = np.dtype(code, copy=True)
        if is_plain(dtype):
            return dtype
    raise Refused(f'numpy.dtype {code!r:.60}')


def is_plain(dtype: np.dtype) -> bool:
    """Whether it is of numbers or text."""
    return dtype.kind in 'biufcSU'


def _set_byte_order(made: np.dtype, order: str) -> None:
    """All else of a state is as it was, for numpy checks no sizes in it."""
    made.__setstate__(  # type: ignore[attr-defined]  # no stub
        made.newbyteorder(_of_type(order, str)).__reduce__()[2])
