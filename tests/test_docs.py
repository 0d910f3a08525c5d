"""What the pages name is there: files, functions, pictures.

Links are checked where the site is built; tables of results, the READMEs'
too, by `tools/studies/report.py --pages --check` in `.ci/run`.
"""
import ast
import re
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'stepnet_mm'
PAGES = [*ROOT.glob('*.md'), ROOT / 'configs/README.md',
         *(ROOT / 'docs').rglob('*.md')]
#: Pages of what ran at some commit name the files of that commit.
PAST = {ROOT / 'CHANGELOG.md', ROOT / 'docs/results.md',
        *(ROOT / 'docs/results').glob('*.md')}


def named_code(text):
    """(path, name) of each `folder/file.py` or `file.py: name` in a text."""
    spans = re.findall(r'`([\w/*]+\.(?:py|sh|yml))(?:: ([\w.]+))?`', text)
    return [(path, name) for path, name in spans if '/' in path or name]


@lru_cache(None)
def definitions(path):
    """Names of a file's classes, functions and methods."""
    nodes = [node for node in ast.parse(path.read_text()).body
             if hasattr(node, 'name')]
    return {node.name for node in nodes} | {
        f'{node.name}.{inner.name}' for node in nodes
        if isinstance(node, ast.ClassDef) for inner in node.body
        if hasattr(inner, 'name')}


def is_there(path, name):
    """Whether there is such a file, by its path from one of three roots."""
    files = [file for root in (ROOT, PACKAGE, ROOT / 'configs')
             for file in root.glob(path) if file.is_file()]
    return files and (not name or name in definitions(files[0]))


def test_named_code_is_there():
    assert not [(page.name, *code) for page in PAGES if page not in PAST
                for code in named_code(page.read_text())
                if not is_there(*code)]


def test_every_picture_is_on_a_page():
    pages = ''.join(page.read_text() for page in PAGES)
    pictures = [*(ROOT / 'docs').rglob('*.png')]
    assert pictures and not [p for p in pictures if p.name not in pages]
