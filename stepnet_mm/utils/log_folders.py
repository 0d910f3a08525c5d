"""The starts of a training, each of which logs into a folder of its own."""
import re
from collections.abc import Iterator
from itertools import chain, groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .files import parse_line

RESUMED = re.compile(rb' resumed epoch: \d+, iter: (\d+)')
ITERATION, STEP = (re.compile(rb'"%b": (\d+)[,}]' % key)
                   for key in (b'iter', b'step'))


class Start(NamedTuple):
    """From where, and behind up to which iteration, a start trained."""
    folder: Path
    begin: int
    end: int

    def led_to(self, other: 'Start') -> bool:
        """Whether the other one can have resumed what this one saved."""
        return self.begin < other.begin < self.end


def log_folders(work_dir) -> list[Path]:
    """The log folders of a work dir, in the order of their starts.

    Their names are times of a clock that may be set back, in a zone that may
    change. So the order is by name, but none comes before one that trained
    what it resumed; and of neighbours that resumed the same iteration, the
    one that came furthest is last. What begins anew has its place by name.
    """
    left = _starts(sorted(Path(work_dir).glob('*/')))
    found: list[Start] = []
    while left:
        ready = [start for start in left if not _waits(start, found, left)]
        begin, same = next(groupby(ready, attrgetter('begin')))
        found.append(min(same, key=attrgetter('end')) if begin else ready[0])
        left.remove(found[-1])
    return [start.folder for start in found]


def logged(work_dir, name: str) -> Iterator[list[dict]]:
    """The lines of ``vis_data/<name>.json``, of each start in turn.

    Others than JSON objects are passed over, such as one that a kill cut.
    """
    for folder in log_folders(work_dir):
        path = folder / 'vis_data' / f'{name}.json'
        if path.is_file():
            yield [*filter(None, map(
                parse_line, path.read_bytes().splitlines()))]


def _waits(start: Start, found: list[Start], left: list[Start]) -> bool:
    return (any(other.led_to(start) for other in left)
            and not any(other.led_to(start) for other in found))


def _starts(folders: list[Path]) -> list[Start]:
    places = [*map(_places, folders)]
    # A start ends behind its last place by less than two of them are apart.
    apart = max((b - a for own in places for a, b in pairwise(own)),
                default=max([0, *chain(*places)]))
    return [Start(folder, begin, max([begin, *own]) + apart)
            for folder, own in zip(folders, places)
            for begin in [_begin(folder, own)]]


def _places(folder: Path) -> list[int]:
    """The iterations that a start logged something of."""
    own, others = b'', b''
    for path in folder.glob('vis_data/*.json'):
        if path.stem in ('scalars', folder.name):  # mmengine's
            own += path.read_bytes()
        else:
            others += path.read_bytes()
    found = ITERATION.findall(own) + STEP.findall(others)
    # A step of an evaluation may be an epoch.
    return sorted({*map(int, found or STEP.findall(own))})


def _begin(folder: Path, places: list[int]) -> int:
    """The iteration that a start resumed, or 0."""
    log = b''.join(path.read_bytes() for path in folder.glob('*.log'))
    if resumed := RESUMED.search(log):
        return int(resumed[1])
    # Without a log the first place says something.
    return 0 if b'(train)' in log else max(min(places, default=0) - 1, 0)
