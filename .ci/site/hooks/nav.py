"""MkDocs hook: a folder in the nav, with a slash, stands for its pages."""
from pathlib import PurePosixPath


def on_files(files, config):
    """Fill the nav, when all pages are there; empty folders leave it."""
    pages = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = _filled(config.nav, pages)
    return files


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
