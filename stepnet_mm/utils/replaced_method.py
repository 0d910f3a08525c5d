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
        setattr(owner, name,
                functools.partial(replacement, getattr(owner, name)))

    def undo(self) -> None:
        """Give the object back what it had."""
        if self._before is None:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._before)
