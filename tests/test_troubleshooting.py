"""docs/reference/troubleshooting.md quotes messages that are there."""
import ast
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs/reference/troubleshooting.md').read_text()
FIRST_CELLS = [line.split(' | ')[0].removeprefix('| ') for line in
               PAGE.splitlines() if line.startswith('| ')]
#: What is quoted without a library's name before it.
OURS = [quote for cell in FIRST_CELLS if not cell.startswith('*')
        for quote in re.findall(r'`([^`]+)`', cell)]


def as_text(node):
    """A string with `...` for what is put in, None for what is none."""
    if isinstance(node, ast.JoinedStr):
        return ''.join(part.value if isinstance(part, ast.Constant) else '...'
                       for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


@lru_cache(None)
def messages():
    """All strings of the package, and the texts of the shell scripts."""
    trees = [ast.parse(path.read_text())
             for path in (ROOT / 'stepnet_mm').rglob('*.py')]
    strings = [as_text(node) for tree in trees for node in ast.walk(tree)]
    scripts = [path.read_text() for path in (ROOT / 'tools').glob('*.sh')]
    return [text for text in strings if text] + scripts


def occurs(quote):
    """Whether a message has the pieces of a quote, in their order."""
    pattern = re.compile('.*'.join(map(re.escape, quote.split('...'))))
    return any(pattern.search(text) for text in messages())


def test_messages_of_ours_are_there():
    assert OURS and not [quote for quote in OURS if not occurs(quote)]
