"""Registers what the package has with mmengine and the libraries on it.

Nothing of theirs is imported for it: what registered_names.py lists is
imported when it is asked for. So ``import stepnet_mm`` takes no time, in
whatever order the libraries come.
"""
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import partial

from .lazy_exports import homes_of
from .registered_names import BINDINGS, NAMES


def register() -> None:
    """Have all that is registered known as soon as a library is there.

    An absent library is skipped silently: either one alone is enough.
    """
    after_import('mmengine.registry', _add_names)
    after_import('mmengine.runner.checkpoint', _make_loading_safe)
    for library in BINDINGS:
        after_import(library, _add_bindings)


def after_import(name: str, action: Callable) -> None:
    """Call ``action(module)`` now, or once the module is imported, if ever."""
    if sys.modules.get(name):  # None forbids an import
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, action))


class _Watch(importlib.abc.MetaPathFinder):
    """Leaves the finding to the others, and acts once the module has run."""

    def __init__(self, name, action):
        self.name, self.action = name, action
        self.asking = False  # two of one module would ask each other

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.asking:
            return None
        self.asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            vars(spec.loader)['exec_module'] = partial(
                self.exec_module, spec.loader.exec_module)
        return spec

    def exec_module(self, run, module):
        # Nothing but this import ever sees it.
        vars(module.__loader__).pop('exec_module', None)
        run(module)
        # An action that fails is due again when the import is tried again.
        self.action(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _LazyEntries(dict):
    """A registry's entries, those of ours imported when they are asked for.

    The registries of other scopes look into their parent's entries and do
    not read its import locations, so that the entries must know it. ``homes``
    has the modules that register further names; if they register them
    elsewhere, as for a copy, the names are ``borrowed`` from the modules.
    """

    def __init__(self, entries: dict, homes: dict, borrowed: bool = False):
        super().__init__(entries)
        self.homes, self.borrowed = homes, borrowed

    def __reduce__(self) -> tuple:
        homes = {n: h for n, h in self.homes.items() if self._is_waiting(n)}
        return _LazyEntries, (dict(self), homes, True)

    def __contains__(self, name) -> bool:
        return super().__contains__(name) or self._is_waiting(name)

    def __setitem__(self, name, value):
        # Import ours first, so that a user's can replace it (force=True).
        if self._is_waiting(name):
            self[name]
        super().__setitem__(name, value)

    def get(self, name, default=None):
        return self[name] if name in self else default

    def __missing__(self, name):
        if not self._is_waiting(name):
            raise KeyError(name)
        module = importlib.import_module(self.homes[name])
        if self.borrowed:
            super().__setitem__(name, getattr(module, name))
        return self[name]

    def _is_waiting(self, name) -> bool:
        # A module that is being imported finds its own names free.
        return name in self.homes and (
            self.borrowed or self.homes[name] not in sys.modules)


def _add_names(registry_module) -> None:
    for name, modules in NAMES.items():
        registry = getattr(registry_module, name)
        registry._module_dict = _LazyEntries(
            registry._module_dict, homes_of(modules))


def _add_bindings(library_module) -> None:
    library = library_module.__name__
    try:
        registries = importlib.import_module(f'{library}.registry')
        found = [getattr(registries, name) for name in BINDINGS[library]]
    except Exception as error:  # an old or broken one; it goes on without us
        warnings.warn(
            f'{library} is installed but does not import as expected, so what '
            f'binds stepnet_mm to it is left out: {type(error).__name__}: '
            f'{error}', stacklevel=2)
        return
    for registry, binding in zip(found, BINDINGS[library].values()):
        _add_location(registry, binding)


def _add_location(registry, binding: str) -> None:
    """Have a registry import a module when it is first asked."""
    if registry._imported:  # its locations are read once
        importlib.import_module(binding)
    else:
        # Registries may share one default list, which += would change.
        registry._locations = [*registry._locations, binding]


def _make_loading_safe(checkpoint_module) -> None:
    from .safe_loading.loaders import register_safe_loaders
    register_safe_loaders()
