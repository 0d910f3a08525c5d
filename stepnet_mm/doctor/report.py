"""The doctor's rows: a level, a finding, and what to do about it."""
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

REPORT_IT = ('if the versions go together (README, "Two commands"), please '
             'report it as an issue, with the file of --json')


class Unavailable(Exception):
    """A check cannot run here; the text says why, and what to do."""


def row(level: str, text: str, **values: object) -> dict:
    """A line (ok, skipped, warning or error) and values for the file."""
    return dict(level=level, text=text, **values)


def attempt(name: str, check: Callable[..., Iterable[dict]],
            *args: object) -> Iterator[dict]:
    """The rows of a check under a name; an exception becomes the last."""
    try:
        for found in check(*args):
            yield dict(found, text=f'{name}: {found["text"]}')
    except Unavailable as error:
        yield row('skipped', f'{name}: {error}')
    except Exception as error:
        yield row('error', f'{name}: {one_line(error)}: {REPORT_IT}')


def one_line(error: BaseException) -> str:
    """An exception's type and text."""
    return f'{type(error).__name__}: {error}'.replace('\n', ' ')


class Report:
    """Prints rows, counts their levels, and writes all after each row.

    Args:
        path (Path, optional): the JSON file.
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self.counts = dict(ok=0, skipped=0, warning=0, error=0)
        self.rows: list[dict] = []

    def add(self, rows: Iterable[dict]) -> None:
        """Add rows as they come."""
        for found in rows:
            self.counts[found['level']] += 1
            self.rows.append(found)
            print(f'{found["level"]:<8} {found["text"]}', flush=True)
            self._save()

    def end(self) -> int:
        """Print the counts; 1 if there was an error, else 0."""
        print('; '.join(f'{number} {level}'
                        for level, number in self.counts.items()))
        self._save(finished=True)
        return int(self.counts['error'] > 0)

    def _save(self, finished: bool = False) -> None:
        if not self.path:
            return
        facts = {key: value for found in self.rows
                 for key, value in found.get('facts', {}).items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(
            dict(command=sys.argv, finished=finished, **facts,
                 counts=self.counts, rows=self.rows), indent=1) + '\n')
