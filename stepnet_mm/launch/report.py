"""The doctor's lines: what was found, and what to do about it."""


class Unavailable(Exception):
    """What a check needs is not there; says what, and how to get it."""


class Report:
    """Prints its rows and counts them by level.

    Attributes:
        counts (dict[str, int]): of ok, skipped, warning and error.
        rows (list[dict]): all, with ``level``, ``text`` and further values.
    """

    def __init__(self) -> None:
        self.counts = dict(ok=0, skipped=0, warning=0, error=0)
        self.rows: list[dict] = []

    def ok(self, what: str, **values: object) -> None:
        """Say what is as it should be."""
        self.add('ok', what, **values)

    def skip(self, what: str) -> None:
        """Say what could not be tried, and why."""
        self.add('skipped', what)

    def warn(self, what: str, todo: str) -> None:
        """Say what may be in the way, and what to do."""
        self.add('warning', f'{what}: {todo}')

    def error(self, what: str, todo: str) -> None:
        """Say what is in the way, and what to do."""
        self.add('error', f'{what}: {todo}')

    def add(self, level: str, text: str, **values: object) -> None:
        """Add a row.

        Args:
            level (str): a key of :attr:`counts`.
            text (str): one line.
            **values: what else a program may want of it.
        """
        self.counts[level] += 1
        self.rows.append(dict(level=level, text=text, **values))
        print(f'{level:<8} {text}', flush=True)


def one_line(error: BaseException) -> str:
    """An exception's type and text."""
    return f'{type(error).__name__}: {error}'.replace('\n', ' ')
