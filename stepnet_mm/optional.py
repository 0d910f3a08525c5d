"""Guarded imports of the modules that bind to one mm library."""
import importlib
import importlib.util
import warnings

#: Libraries that a warning was given for: each is named once.
_warned = set()


def import_binding(module: str, library: str) -> bool:
    """Import ``module``, which needs ``library``.

    An absent library is skipped silently: either one alone is enough. One
    that is there but fails to import, for any reason, is skipped with a
    warning that carries its message. (The libraries import one another where
    they can, catching ImportError only: one that fails with anything else
    takes the other down with it, and both are skipped.)

    Args:
        module (str): absolute name of the binding module.
        library (str): the library's import name.

    Returns:
        bool: whether the binding is there.
    """
    if importlib.util.find_spec(library) is None:
        return False
    try:
        importlib.import_module(module)
    except Exception as error:
        if library not in _warned:
            warnings.warn(
                f'{library} is installed but does not import, so what binds '
                f'stepnet_mm to it is left out ({module}, ...): '
                f'{type(error).__name__}: {error}',
                stacklevel=2)
        _warned.add(library)
        return False
    return True
