"""Calls a function when a module has been imported, by anybody."""
import importlib.abc
import sys
from collections.abc import Callable


def after_import(name: str,
                 action: Callable,
                 failure: Callable | None = None) -> None:
    """Call ``action`` once the module is there: now, or when it is imported.

    Args:
        name (str): absolute name of the module, which may not exist.
        action (callable): gets the module.
        failure (callable, optional): gets the name and the exception of the
            first import that fails; the exception goes on.
    """
    if sys.modules.get(name):  # None forbids an import
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Watch(name, action, failure))


class _Watch(importlib.abc.MetaPathFinder):
    """Leaves the finding to the others, and wraps what they find."""

    def __init__(self, name, action, failure):
        self.name, self.action, self.failure = name, action, failure
        self.asking = False  # two of one module would ask each other

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.asking:
            return None
        self.asking = True
        try:
            found = (finder.find_spec(name, path, target)
                     for finder in sys.meta_path)
            spec = next(filter(None, found), None)
        finally:
            self.asking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def end(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader(importlib.abc.Loader):
    """The module's own loader, and the action behind it."""

    def __init__(self, loader, watch):
        self.loader, self.watch = loader, watch

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        # Nothing but this import ever sees the wrapper.
        module.__spec__.loader = module.__loader__ = self.loader
        try:
            self.loader.exec_module(module)
        except Exception as error:
            self._report(error)
            raise
        # An action that fails is due again when the import is tried again.
        self.watch.action(module)
        self.watch.end()

    def _report(self, error):
        failure, self.watch.failure = self.watch.failure, None
        if failure:
            failure(self.watch.name, error)
