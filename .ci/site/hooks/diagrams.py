"""MkDocs hook: a diagram's arrows become a table.

Mermaid would draw it in the reader's browser, fetched from another host.
"""
import re

DIAGRAM = re.compile(r'^```mermaid\n(.*?)^```$', re.M | re.S)
ARROW = re.compile(r'^  ([\w &]+) --> (\w+)$', re.M)


def on_page_markdown(markdown, page, config, files):
    """Replace each diagram of a page."""
    return DIAGRAM.sub(lambda found: _table(ARROW.findall(found[1])),
                       markdown)


def _table(arrows: list[tuple[str, str]]) -> str:
    rows = [f'| `{above}` | {_names(below)} |' for below, above in arrows]
    return '\n'.join(['| folder | imports |', '|---|---|', *rows])


def _names(below: str) -> str:
    return ', '.join(f'`{name}`' for name in below.split(' & '))
