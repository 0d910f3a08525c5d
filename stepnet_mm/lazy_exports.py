"""Names of a package that are imported when they are asked for."""
import importlib
from collections.abc import Callable


def lazy_exports(package: str, modules: dict) -> tuple[Callable, list]:
    """A package's ``__getattr__`` and ``__all__`` (PEP 562).

    ``package`` is its ``__name__``; ``modules`` has for each submodule the
    names that it gives the package.
    """
    homes = homes_of(modules)

    def __getattr__(name: str):
        if name in modules:
            return importlib.import_module(f'{package}.{name}')
        if name not in homes:
            raise AttributeError(
                f'module {package!r} has no attribute {name!r}')
        module = importlib.import_module(f'{package}.{homes[name]}')
        return getattr(module, name)

    return __getattr__, sorted(homes)


def homes_of(modules: dict) -> dict:
    """Module -> its names, turned round: name -> its module."""
    return {name: module for module, names in modules.items()
            for name in names}
