"""The logs of a run that was killed and resumed, in order."""
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path


def in_order(steps: Mapping[Path, Sequence[float]]) -> list[Path]:
    """A work dir's log folders, or files in them, by their start.

    mmengine names them by local time, which goes back at the end of summer
    time and on a machine in another zone. If a start does not go on from the
    last step of the starts before it, the first steps decide, not the names.

    Args:
        steps (mapping): path -> the steps that were logged there, in order.

    Returns:
        list[Path]: the oldest start first.
    """
    first = {path: own[0] if own else inf for path, own in steps.items()}
    between = max(min(first.values(), default=0),
                  *(b - a for own in steps.values() for a, b in pairwise(own)),
                  0)
    reached: float = 0
    for path in sorted(steps):
        if reached + between < first[path] < inf:
            return sorted(sorted(steps), key=first.__getitem__)
        reached = max(reached, *steps[path], 0)
    return sorted(steps)


def parse_line(line: bytes) -> dict | None:
    """A line of mmengine's log; None if it is no JSON object, or cut off."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
