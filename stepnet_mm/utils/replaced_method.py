"""A method of one object, replaced for a while."""
import functools
from collections.abc import Callable


class ReplacedMethod:
    """The one way in which this package wraps a method of another library's.

    The method of this object alone is replaced, its class stays as it is.

    Args:
        owner (object): has the method; also a module or a DDP wrapper.
        name (str): the method's.
        replacement (callable): is called in its place, with the method
            before the arguments.
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
