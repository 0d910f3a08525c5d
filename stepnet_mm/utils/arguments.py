"""Arguments of classes in a config, and checks of numbers in it."""
import inspect
import math


def accepted_arguments(cls: type) -> set[str]:
    """Arguments of a class and its bases, which get its ``**kwargs``."""
    return {name for base in cls.__mro__ if '__init__' in vars(base)
            for name in inspect.signature(vars(base)['__init__']).parameters}


def check_count(key: str, value, least: int = 0) -> None:
    """Check the integer of a config's key.

    Raises:
        ValueError: on another type, bool too, or less than ``least``.
    """
    if type(value) is not int or value < least:
        raise ValueError(
            f'{key}: expected an integer of at least {least}, got {value!r}; '
            'change it')


def check_seconds(key: str, value) -> None:
    """Check a time in seconds, above 0 and finite.

    Raises:
        ValueError: on anything else.
    """
    if type(value) not in (int, float) or not 0 < value < math.inf:
        raise ValueError(f'{key}: expected a number of seconds above 0, got '
                         f'{value!r}; change it')
