"""What hooks and recorders share: ReplacedMethod, loaders, modes, checks."""
import functools
from collections.abc import Callable
from contextlib import contextmanager
from types import MethodType

from torch import nn
from torch.utils.data import DataLoader


def check_count(key: str, value, least: int = 0) -> None:
    """Check the integer of a config's key.

    Raises:
        ValueError: on another type, bool too, or less than ``least``.
    """
    if type(value) is not int or value < least:
        raise ValueError(
            f'{key}: expected an integer of at least {least}, got {value!r}; '
            'change it')


def loop_loaders(loop) -> list[DataLoader]:
    """A loop's loaders: a user's may have several, a config's dict none."""
    found = getattr(loop, 'dataloader', None)
    loaders = found if isinstance(found, (list, tuple)) else [found]
    return [loader for loader in loaders if isinstance(loader, DataLoader)]


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside DDP, averaged (EMA) and test-time augmented models."""
    # Seconds to import, which those who only look for blocks need not wait.
    from mmengine.model import (
        BaseAveragedModel,
        BaseTTAModel,
        is_model_wrapper,
    )
    while is_model_wrapper(model) or isinstance(
            model, (BaseAveragedModel, BaseTTAModel)):
        model = model.get_submodule('module')
    return model


@contextmanager
def eval_mode(model: nn.Module):
    """Eval mode; afterwards each module's own mode again."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


class ReplacedMethod:
    """Wraps a method of another library's object.

    The method of this object alone (also a module or a DDP wrapper) is
    replaced, its class stays as it is. The replacement is called with the
    method before the arguments.
    """

    def __init__(self, owner, name: str, replacement: Callable):
        self.owner, self.name = owner, name
        # It may have been replaced before, by others too.
        self._before = vars(owner).get(name)
        self._method = getattr(owner, name)
        self._call = functools.partial(replacement, self._method)
        setattr(owner, name, self)

    def __call__(self, *args, **kwargs):
        """The replacement, or once it is undone the method itself."""
        return self._call(*args, **kwargs)

    def __reduce__(self):
        """A copy of the owner has its class's method."""
        return MethodType, (getattr(type(self.owner), self.name), self.owner)

    def undo(self) -> None:
        """Give the object back what it had.

        One that was replaced again passes calls on until that is undone.
        """
        self._call = self._method
        while self._is_undone(top := vars(self.owner).get(self.name)):
            if top._before is None:
                delattr(self.owner, self.name)
            else:
                setattr(self.owner, self.name, top._before)

    @staticmethod
    def _is_undone(method) -> bool:
        return isinstance(method, ReplacedMethod) and (
            method._call is method._method)
