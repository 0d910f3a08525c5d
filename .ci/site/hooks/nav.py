"""MkDocs hook: a folder in the nav, with a slash, stands for its pages.

For those, by name, that the nav does not name itself.
"""
from pathlib import PurePosixPath


def on_files(files, config):
    """Fill the nav, when all pages are there; empty folders leave it."""
    named = set(_places(config.nav))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = _filled(config.nav, sorted({*pages} - named))
    return files


def _places(nav: list):
    for item in nav:
        for place in item.values() if isinstance(item, dict) else [item]:
            yield from _places(place) if isinstance(place, list) else [place]


def _filled(nav: list, pages: list[str]) -> list:
    items = []
    for item in nav:
        if isinstance(item, str):
            items += _pages(item, pages)
            continue
        (title, place), = item.items()
        inner = (_filled(place, pages) if isinstance(place, list)
                 else _pages(place, pages))
        if inner:
            items.append({title: place if inner == [place] else inner})
    return items


def _pages(place: str, pages: list[str]) -> list[str]:
    if not place.endswith('/'):
        return [place]
    folder = PurePosixPath(place)
    return [page for page in pages if PurePosixPath(page).parent == folder]
