"""The doctor's lines: what was found, and what to do about it."""


class Report:
    """Prints its lines and counts them by level: ok, warning or error."""

    def __init__(self) -> None:
        self.counts = dict(ok=0, warning=0, error=0)

    def ok(self, what: str) -> None:
        """Say what is as it should be."""
        self._add('ok', what)

    def warn(self, what: str, todo: str) -> None:
        """Say what may be in the way, and what to do."""
        self._add('warning', f'{what}: {todo}')

    def error(self, what: str, todo: str) -> None:
        """Say what is in the way, and what to do."""
        self._add('error', f'{what}: {todo}')

    def _add(self, level: str, text: str) -> None:
        self.counts[level] += 1
        print(f'{level:<8} {text}')


def one_line(error: BaseException) -> str:
    """An exception's type and text."""
    return f'{type(error).__name__}: {error}'.replace('\n', ' ')
