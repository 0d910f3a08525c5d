"""Files of records, a JSON object a line, which grow and which people edit."""
import json
import math
import re
from collections.abc import Callable
from typing import BinaryIO, TypeVar

T = TypeVar('T')
#: Begins every line of ours, which shows one that a kill cut.
BEGINNINGS = b'{"format": "stepnet_mm', b'{"first": '
STRING = re.compile(rb'"(?:\\.|[^"\\])*"?')


def read_lines(file: BinaryIO, parse: Callable[[int, dict], T],
               wanted: str, advice: str) -> list[T]:
    """What ``parse`` makes of each line of a file, of any line ends.

    It gets the line's number and object. Blank lines are passed over, and a
    last line that a kill cut.

    Raises:
        ValueError: if a line is no object of finite numbers, or ``parse``
            raises an error; it names file and line, what is ``wanted``, and
            the ``advice``.
    """
    file.seek(0)
    lines = file.read().splitlines(keepends=True)
    if lines and _is_cut(lines[-1], alone=len(lines) == 1):
        lines.pop()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                found.append(parse(number, _object(line)))
        except (ValueError, LookupError, TypeError, ArithmeticError,
                RecursionError) as error:
            raise ValueError(
                f'{file.name}: expected {wanted} in line {number}, got '
                f'{line[:60]!r} ({error!r:.500}); {advice}') from None
    return found


def end_last_line(file: BinaryIO) -> None:
    """Before lines are appended: end the last one, or take off a cut one.

    The file is opened by ``'a+b'``, and read by :func:`read_lines`.
    """
    file.seek(0)
    *before, last = [b'', *file.read().splitlines(keepends=True)]
    if _is_cut(last, alone=len(before) == 1):
        file.truncate(sum(map(len, before)))
    elif last and not last.endswith((b'\n', b'\r')):
        file.write(b'\n')


def _is_cut(line: bytes, alone: bool) -> bool:
    """Whether a kill, or a full disk, left the last line like that."""
    # It leaves whole pages, so more than a beginning of a file's only line.
    bare = STRING.sub(b'', line)
    return (bare.count(b'{') > bare.count(b'}')
            and not line.endswith((b'\n', b'\r'))
            and any(line.startswith(text)
                    or text.startswith(line) and not alone
                    for text in BEGINNINGS))


def _object(line: bytes) -> dict:
    content = json.loads(line, parse_float=_finite, parse_constant=_finite)
    if not isinstance(content, dict):
        raise ValueError('no object')
    return content


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f'{text} is not finite')
    return number
